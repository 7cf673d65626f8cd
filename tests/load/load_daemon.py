# SPDX-License-Identifier: Apache-2.0
"""A daemon and the programs that keep it busy, for the measurements in this folder."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 300


class Unable(Exception):
    """This cannot be measured here; the message says why."""


class Daemon:
    """ttmemd with all its files in one folder."""

    def __init__(self, build):
        self.build = build
        self.folder = Path(tempfile.mkdtemp(prefix="ttmem-load-"))
        self.socket = self.folder / "s"
        self.legacy = self.folder / "old"
        self.env = {n: v for n, v in os.environ.items() if not n.startswith(("TTMEM", "TT_ALLOC"))}
        self.env.update(TTMEM_SOCKET=str(self.socket), TTMEM_PROC_ROOT=str(self.folder / "blind"))
        (self.folder / "blind").mkdir()
        self.process = None
        self.address = None
        self.clients = []

    def start(self):
        """Seconds until it was ready; it then knows all running processes."""
        begin = time.monotonic()
        reading, writing = os.pipe()
        env = {n: v for n, v in self.env.items() if n != "TTMEM_PROC_ROOT"}
        log = open(self.folder / "log", "ab")  # of the daemon
        command = [
            self.build / "src/daemon/ttmemd", "--socket", self.socket, "--legacy-socket", self.legacy,
            "--http", "127.0.0.1:0", "--http-details", "--state", self.folder / "state",
            "--ready-fd", writing,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=[writing],
        )  # fmt: skip
        os.close(writing)
        log.close()
        if os.read(reading, 1) != b"\n":
            sys.exit((self.folder / "log").read_text())
        os.close(reading)
        return time.monotonic() - begin

    def kill(self):
        self.process.kill()
        self.process.wait()

    def http(self):
        """The URL of its HTTP server, from its log, or None."""
        words = (self.folder / "log").read_text().split()
        found = [w for w in words if w.startswith("http://127.0.0.1:") and not w.endswith(":0/")]
        return found[-1] if found else None

    def load(self, count, rate, live, devices=100, *, each=1, stacks="off"):
        """Starts @count load programs and waits until all of them are running.

        They take turns on @devices; @each: how many of them each uses.
        """
        program = self.build / "tests/programs/load"
        env = {**self.env, "TTMEM": "1", "TTMEM_STACKS": stacks}
        env.pop("TTMEM_PROC_ROOT")
        for i in range(count):
            first = i % devices
            command = [str(program), str(rate), str(live), f"{first}-{first + each - 1}", f"load{i % 100}"]
            self.clients.append(
                subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
        for client in self.clients:
            assert client.stdout.readline() == b"ok\n"

    def end_load(self):
        for client in self.clients:
            client.kill()
        for client in self.clients:
            client.wait()
            client.stdin.close()
            client.stdout.close()
        self.clients = []

    def ttmem(self, *args):
        result = subprocess.run(
            [str(self.build / "src/cli/ttmem"), *args, "--json"],
            env=self.env, capture_output=True, check=True, timeout=LIMIT,
        )  # fmt: skip
        return json.loads(result.stdout)

    def wait_for_books(self, count):
        deadline = time.monotonic() + LIMIT
        while self.ttmem("status")["books"] != count:
            if time.monotonic() > deadline:
                sys.exit("the daemon does not know everybody")
            time.sleep(0.1)

    def events(self):
        """All allocations and frees counted so far."""
        return sum(
            memory["allocs"] + memory["frees"]
            for process in self.ttmem("ps")["processes"]
            for device in process["devices"]
            for memory in device["memory"].values()
        )

    def cpu_ns(self, names=("",)):
        """Processor time of all threads, or of those whose names begin so."""
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                if (task / "comm").read_text().startswith(names):
                    total += int((task / "schedstat").read_text().split()[0])
        return total

    def cpu_percent(self, seconds, names=("",)):
        cpu, wall = self.cpu_ns(names), time.monotonic()
        time.sleep(seconds)
        return (self.cpu_ns(names) - cpu) / 1e7 / (time.monotonic() - wall)

    def rss_mib(self, field="VmRSS"):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        return None

    def close(self):
        self.end_load()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        shutil.rmtree(self.folder)
