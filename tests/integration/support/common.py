# SPDX-License-Identifier: Apache-2.0
"""What every folder of Python tests needs: waiting, and counts for ./dev."""

import contextlib
import os
import tempfile
import time
from pathlib import Path

# Seconds. Ends a hang, and judges nothing: what takes a few seconds alone passes with a tenth of a core.
LIMIT = 240


def wait_for(condition, what="it", limit=LIMIT / 2):
    """Polls; the limit is far beyond what anything here takes."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


NOBODY = 65534


def become(user, groups=()):
    """Command words that run what comes behind them as another user."""
    groups = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ("setpriv", f"--reuid={user}", f"--regid={user}", groups)


AS_NOBODY = become(NOBODY)


def everybody_may_enter(folder):
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


@contextlib.contextmanager
def shared_folder():
    """A new folder that every user may enter. pytest's own are closed, and so may be TMPDIR."""
    place = next(path for path in (Path(tempfile.gettempdir()), Path("/tmp")) if everybody_may_enter(path))
    with tempfile.TemporaryDirectory(prefix="ttmem-test-", dir=place) as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def record(name, terminalreporter):
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
        for report in terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
            crash = getattr(report.longrepr, "reprcrash", None)
            lines = str(crash.message if crash else report.longrepr).splitlines() or [""]
            results.write(f"# FAIL {report.nodeid}: {lines[0][:300]}\n")
        for report in terminalreporter.stats.get("skipped", []):
            reason = str(report.longrepr[-1] if report.longrepr else "").replace("\n", " ")
            results.write(f"# skip {report.nodeid}: {reason}\n")
        results.write(f"{name} {passed} {failed} {skipped}\n")
