# SPDX-License-Identifier: Apache-2.0
"""A long mixed load with an independent truth: ./dev soak mixed [MINUTES].

Processes of both protocols allocate and free at random (tests/programs/soak-client.c). Each writes what it holds into
a file of its own, which outlives it. Meanwhile some are killed, ttmemd is restarted and killed, and its disk fills up.
Of stopped processes the daemon's totals, and of killed ones its leak reports, must be what the files say.

A third of the processes are in memory cgroups with a small limit. The limit must not kill any of them, and the shared
memory of a group, which includes the books of its exited processes, must be 0 soon after the last one's report.

Old clients lose their connection where a restart does not hand it over. These are counted as cut and replaced; one
that is not cut must be right to the byte.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from company import Company, sentence
from load_daemon import Daemon
from memory_groups import LIMIT as GROUP_LIMIT
from memory_groups import Groups

TRUTH = struct.Struct("<8Q")
PATIENCE = 60  # seconds for an answer to become right, on a busy machine
FULL_PATIENCE = 5  # while the disk is full: what cannot be stored then is no fault
GROUP_PATIENCE = 5  # seconds from the last report of a group until it has no shared memory
DEVICES = 8
DISK = "64m"


class Client:
    """One process and its truth."""

    def __init__(self, soak, kind, group):
        self.kind = kind
        self.group = group
        self.truth = soak.daemon.folder / "truth" / str(soak.started)
        command = [soak.daemon.build / "tests/programs/soak-client", kind, self.truth, soak.started % DEVICES, soak.rate]
        if kind == "old":
            command.append(soak.daemon.legacy)
        if group:
            command = group.enter(self, command)
        env = {n: v for n, v in soak.daemon.env.items() if n != "TTMEM_PROC_ROOT"}
        self.process = subprocess.Popen(list(map(str, command)), env={**env, "TTMEM": "1"})
        self.pid = self.process.pid

    def read(self):
        """(events, the pairs of bytes and buffers that are right, whether its connection was cut)"""
        try:
            turn, events, bytes_, buffers, next_bytes, next_buffers, cut, _ = TRUTH.unpack(self.truth.read_bytes())
        except (OSError, struct.error):
            return 0, {(0, 0)}, False
        right = {(bytes_, buffers)} | ({(next_bytes, next_buffers)} if turn % 2 else set())
        return events, right, bool(cut)

    def end(self):
        self.process.kill()
        self.process.wait()


def totals(process):
    """(bytes, buffers) of a process in a document."""
    memories = [m for device in process["devices"] for m in device["memory"].values()]
    return sum(m["used"] for m in memories), sum(m["buffers"] for m in memories)


class Soak:
    def __init__(self, build, options):
        self.daemon = Daemon(build)
        self.rate = options.rate
        self.started = 0
        self.clients = []
        self.figures = dict.fromkeys(
            ("events", "compared", "kills", "reports", "restarts", "crashes", "full", "unstored", "cut", "groups", "limited", "wrong"), 0
        )  # fmt: skip
        self.longest = 0.0  # seconds until a group had no shared memory
        self.peak = 0  # bytes of a group
        self.random = random.Random(options.seed)
        self.groups = Groups(self.daemon.folder.name)
        (self.daemon.folder / "truth").mkdir()
        self.disk = self.mount()
        self.is_full = False

    def mount(self):
        """A small disk for the daemon's state; only root can."""
        state = self.daemon.folder / "state"
        state.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "soak", state], capture_output=True, check=False
        )
        if done.returncode != 0:
            print("no small disk can be mounted here: the disk never fills up", flush=True)
        return state if done.returncode == 0 else None

    def start(self, kind, group=None):
        self.started += 1
        self.figures["limited"] += group is not None
        self.clients.append(Client(self, kind, group))

    def wrong(self, text):
        self.figures["wrong"] += 1
        print(f"WRONG: {text}", flush=True)

    def document(self, page):
        url = f"{self.daemon.http().rstrip('/')}/api/v1/{page}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return json.load(answer)

    def until(self, condition, patience=PATIENCE):
        """True as soon as it holds; an answer that fails is asked for again."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                if condition():
                    return True
            time.sleep(0.2)
        return False

    def compare(self, some):
        """What the daemon says of processes that stand still."""
        for client in some:
            client.process.send_signal(signal.SIGSTOP)
        seen = {}

        def is_right():
            rows = {p["pid"]: p for p in self.document("smi")["processes"]}
            for client in some:
                seen[client] = totals(rows[client.pid]) if client.pid in rows else (0, 0)
            return all(seen[c] in c.read()[1] or c.read()[2] for c in some)

        if not self.until(is_right):
            for client in some:
                _, right, cut = client.read()
                if not cut and seen.get(client) not in right:
                    self.wrong(f"{client.kind} process {client.pid}: {seen.get(client)}, is {right}")
        self.figures["compared"] += len(some)
        for client in some:
            client.process.send_signal(signal.SIGCONT)

    def retire(self, client, *, replace=True):
        events, right, cut = client.read()
        self.figures["events"] += events
        self.figures["cut"] += cut
        self.clients.remove(client)
        client.truth.unlink(missing_ok=True)
        if client.group:
            client.group.members.remove(client)
        if replace:
            self.start(client.kind, client.group and self.groups.next(client.group))
        return right, cut

    def kill(self, some, *, replace=True):
        """Each leaves exactly what it held."""
        for client in some:
            client.process.kill()
        for client in some:
            client.process.wait()
            right, cut = self.retire(client, replace=replace)
            self.figures["kills"] += 1
            # One that was killed in the middle of its first or last event may have held nothing: then there is no report.
            if not cut and (0, 0) not in right:
                self.expect(client, right)
        if not self.is_full:
            self.end_groups(self.groups.ended(whole=replace))

    def kill_group(self):
        """All processes of a group at once, as the end of a container does it."""
        groups = [group for group in self.groups.all if group.members]
        if groups:
            self.kill(list(self.random.choice(groups).members))

    def end_groups(self, some):
        for group in some:
            self.peak = max(self.peak, group.peak())
            took, killed = self.groups.end(group, GROUP_PATIENCE)
            self.figures["groups"] += 1
            if took is None:
                self.wrong(f"{group.folder.name} has {group.left} bytes of shared memory after its last process")
            else:
                self.longest = max(self.longest, took)
            if killed:
                self.wrong(f"{killed} processes of {group.folder.name} were killed by its limit")

    def expect(self, client, right):
        found = []

        def is_there():
            found[:] = [
                (p["bytes"], p.get("buffer_count", len(p["buffers"])))
                for p in self.document(f"leaks?pid={client.pid}")["processes"]
                if p["pid"] == client.pid
            ]
            return bool(found)

        if not self.until(is_there, FULL_PATIENCE if self.is_full else PATIENCE):
            if self.is_full:
                self.figures["unstored"] += 1
            else:
                self.wrong(f"no leak report of {client.kind} process {client.pid}, which held {right}")
        elif found[0][0] not in {bytes_ for bytes_, _ in right}:
            self.wrong(f"leak report of {client.kind} process {client.pid}: {found[0]}, was {right}")
        else:
            self.figures["reports"] += 1

    def reap_cut(self):
        for client in [c for c in self.clients if c.process.poll() is not None]:
            _, cut = self.retire(client)
            if not cut:
                self.wrong(f"{client.kind} process {client.pid} ended with {client.process.returncode}")

    def restart(self):
        """Half of them orderly."""
        if self.random.random() < 0.5:
            self.daemon.process.send_signal(signal.SIGTERM)
            self.daemon.process.wait(timeout=PATIENCE)
            self.figures["restarts"] += 1
        else:
            self.daemon.kill()
            self.figures["crashes"] += 1
        (self.daemon.folder / "log").unlink()
        self.daemon.start()
        self.until(lambda: self.document("smi"))
        self.reap_cut()

    def fill(self):
        # Even the file may find no room.
        with contextlib.suppress(OSError), open(self.disk / "filler", "wb") as file:
            while True:
                file.write(bytes(1 << 16))
        self.is_full = True
        self.figures["full"] += 1

    def drain(self):
        (self.disk / "filler").unlink(missing_ok=True)
        self.is_full = False
        self.end_groups(self.groups.ended())

    def sample(self, count):
        return self.random.sample(self.clients, min(count, len(self.clients)))

    def round(self, number):
        self.reap_cut()
        self.compare(self.sample(20))
        self.kill(self.sample(5))
        if number % 2 == 1:
            self.kill_group()
        if number % 3 == 2:
            self.restart()
            self.compare(self.sample(20))
        if self.disk and number % 7 == 5:
            self.fill()
            self.kill(self.sample(2))
            self.compare(self.sample(10))
            self.drain()
        if number % 10 == 9:
            self.compare(list(self.clients))

    def events(self):
        return self.figures["events"] + sum(client.read()[0] for client in self.clients)

    def tell(self, since):
        words = ", ".join(f"{name} {value:,}" for name, value in {**self.figures, "events": self.events()}.items())
        print(f"{(time.monotonic() - since) / 60:5.1f} min: {words}", flush=True)

    def run(self, options):
        since = said = time.monotonic()
        number = 0
        self.daemon.start()
        self.until(lambda: self.document("smi"))
        for i in range(options.processes):
            self.start("old" if i % 4 == 3 else "native", self.groups.next() if i % 3 == 0 else None)
        while time.monotonic() - since < options.minutes * 60:
            self.round(number)
            number += 1
            if time.monotonic() - said > 30:
                said = time.monotonic()
                self.tell(since)
        self.compare(list(self.clients))
        self.kill([c for i, c in enumerate(self.clients) if c.group or i < 50], replace=False)
        self.figures["events"] = self.events()
        return time.monotonic() - since

    def close(self):
        for client in self.clients:
            client.end()
        self.daemon.process.kill()
        self.daemon.process.wait()
        if self.disk:
            subprocess.run(["umount", "-l", self.disk], check=False)
        self.groups.close()
        shutil.rmtree(self.daemon.folder, ignore_errors=True)


def report(soak, seconds, options, told):
    print(f"\n{options.processes} processes, {seconds / 60:.1f} minutes; {sentence(told)}")
    for name, text in (
        ("events", "events"), ("compared", "totals compared with the truth"), ("kills", "processes killed"),
        ("reports", "leak reports that were right"), ("unstored", "leak reports that a full disk refused"),
        ("restarts", "restarts of the daemon"), ("crashes", "kills of the daemon"), ("full", "times the disk was full"),
        ("cut", "old clients whose connection a restart cut"), ("limited", "processes in a memory cgroup"),
        ("groups", "memory cgroups whose processes had all ended"), ("wrong", "wrong"),
    ):  # fmt: skip
        print(f"| {text} | {soak.figures[name]:,} |")
    print(f"\nShared memory of a cgroup was 0 at most {soak.longest:.1f} s after the report of its last process;")
    print(f"a cgroup had at most {soak.peak / (1 << 20):.1f} MiB of {GROUP_LIMIT >> 20}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--rate", type=int, default=500, help="events per second of each")
    parser.add_argument("--seed", type=int, default=os.getpid())
    options = parser.parse_args()
    company = Company()
    soak = Soak(Path(os.environ["TTMEM_BUILD"]), options)
    try:
        seconds = soak.run(options)
    finally:
        soak.close()
    report(soak, seconds, options, company.tell())
    return 1 if soak.figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
