# SPDX-License-Identifier: Apache-2.0
"""What every folder of Python tests needs: waiting, and counts for ./dev."""

import os
import time

# Ends a hang; nothing takes a tenth of it.
LIMIT = 60


def wait_for(condition, what="it", limit=LIMIT / 2):
    """Polls; the limit is far beyond what anything here takes."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def record(name, terminalreporter, unsteady=()):
    """Append one line of counts, as the C test runner does. With xdist, only the controller."""
    path = os.environ.get("TTMEM_RESULTS")
    if not path or hasattr(terminalreporter.config, "workerinput"):
        return

    def count(*outcomes):
        return sum(len(terminalreporter.stats.get(outcome, [])) for outcome in outcomes)

    passed = count("passed", "xpassed")
    failed = count("failed", "error")
    skipped = count("skipped", "xfailed")
    with open(path, "a", encoding="utf-8") as results:
        for report in terminalreporter.stats.get("skipped", []):
            reason = str(report.longrepr[-1] if report.longrepr else "").replace("\n", " ")
            results.write(f"# skip {report.nodeid}: {reason}\n")
        for nodeid in unsteady:
            results.write(f"# unsteady {nodeid}: failed at first, passed then\n")
        results.write(f"{name} {passed} {failed} {skipped}\n")
