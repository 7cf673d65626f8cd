#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What "ttmem top" costs at 10 Hz with 100 processes and 100,000 buffers: a line for each view.

Runs the programs of a build folder (TTMEM_BUILD) in tmux; ./dev load top builds for speed and starts this
in a pid namespace of its own. Costs are the processor time of the whole process as the kernel counts
it; looks are counted by the sleeps of the thread that reads totals.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

VIEWS = ["devices", "processes", "buffers", "call sites", "incidents", "telemetry"]


class Crowd:
    """Processes with @live buffers each; @rate: events per second, 0 = idle."""

    def __init__(self, build, env, count, live, rate):
        self.all = [
            subprocess.Popen(
                [build / "tests/programs/load", str(rate), str(live), str(i % 8), f"load{i}"],
                env={**env, "TTMEM": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for i in range(count)
        ]
        for process in self.all:
            process.stdout.readline()

    def close(self):
        for process in self.all:
            process.kill()
            process.wait()


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid):
    """Sleeps of the second thread, which reads totals."""
    thread = sorted(map(int, os.listdir(f"/proc/{pid}/task")))[1]
    text = Path(f"/proc/{pid}/task/{thread}/status").read_text()
    return int(text.split("voluntary_ctxt_switches:")[1].split()[0])


def measure(tmux, env, command, key, seconds):
    """(percent of a core, looks per second) while one view is shown."""
    subprocess.run([*tmux, "new-session", "-d", "-x", "120", "-y", "40", command], env=env, check=True)
    try:
        time.sleep(3)  # the first look opens every book
        subprocess.run([*tmux, "send-keys", key], check=True)
        time.sleep(2)
        out = subprocess.run(
            [*tmux, "display-message", "-p", "#{pane_pid}"], capture_output=True, text=True, check=True
        )
        pid = int(out.stdout)
        begin, used, slept = time.monotonic(), cpu_seconds(pid), sleeps(pid)
        time.sleep(seconds)
        passed = time.monotonic() - begin
        return 100 * (cpu_seconds(pid) - used) / passed, (sleeps(pid) - slept) / passed
    finally:
        subprocess.run([*tmux, "kill-server"], capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--live", type=int, default=1000, help="buffers of each")
    parser.add_argument("--rate", type=int, default=100, help="events of each in a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    build = Path(os.environ["TTMEM_BUILD"]).resolve()
    folder = Path(tempfile.mkdtemp(prefix="ttmem-top-load-"))
    env = {n: v for n, v in os.environ.items() if not n.startswith(("TTMEM", "TT_ALLOC"))}
    env.update(TTMEM_SOCKET="none", LC_ALL="C.UTF-8")
    crowd = Crowd(build, env, options.processes, options.live, options.rate)
    command = f"exec {build}/src/cli/ttmem top -r 100"
    try:
        for number, view in enumerate(VIEWS, 1):
            results = []
            for run in range(options.runs):
                tmux = ["tmux", "-S", str(folder / f"{number}-{run}"), "-f", "/dev/null"]
                results.append(measure(tmux, env, command, str(number), options.seconds))
            costs, looks = zip(*results)
            print(
                f"{number} {view:<10} {statistics.median(costs):5.2f} % of a core "
                f"({min(costs):.2f}-{max(costs):.2f}), {statistics.median(looks):4.1f} looks at totals a second",
                flush=True,
            )
    finally:
        crowd.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
