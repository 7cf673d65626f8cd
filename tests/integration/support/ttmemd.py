# SPDX-License-Identifier: Apache-2.0
"""A real ttmemd with all its files in a folder of the test, and old clients for it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from conftest import LIMIT, has_legacy
from world import Player, check_schema, descriptors, wait_for

SERVES = re.compile(r"^ttmemd: http://([\d.:]+|\[[\da-f:]+\]:\d+)/$", re.M)

# Freed memory is overwritten at once: a use after free fails here and not on a user's machine.
GONE = {"MALLOC_PERTURB_": "90", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def get(daemon, path):
    """The document that the daemon serves, with all details."""
    status, body = daemon.fetch(path, token=True)
    assert status == 200, body
    return json.loads(body)


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return None


class Ttmemd:
    """start(), kill(), stop() any number of times; players and commands use its socket."""

    def __init__(self, build, env, folder):
        self.build = build
        self.folder = folder
        self.socket = self.folder / "s"
        self.old_socket = self.folder / "old"
        self.state = self.folder / "state"
        self.log = self.folder / "log"
        self.program = build / "src" / "daemon" / "ttmemd"
        self.errors = None  # a file for its standard error; otherwise that is the log too
        self.env = {**env, "TTMEM_SOCKET": str(self.socket)}
        self.process = None
        self.said = 0  # what earlier ones have printed
        self.players = []
        self.others = []

    @property
    def legacy(self):
        """Where old clients are served."""
        if not has_legacy():
            pytest.skip("this build has nothing for the old system")
        return self.old_socket

    @legacy.setter
    def legacy(self, path):
        self.old_socket = path

    def command(self, *args):
        return [
            self.program,
            "--socket", self.socket,
            "--legacy-socket", self.old_socket if has_legacy() else "none",
            "--http", "none",
            "--state", self.state,
            *args,
        ]  # fmt: skip

    def start(self, *args, before=(), env=None):
        """Returns when it is ready."""
        assert self.process is None
        self.said = len(self.text())
        reading, writing = os.pipe()
        with open(self.log, "ab") as log, open(self.errors or self.log, "ab") as errors:
            self.process = subprocess.Popen(
                [*map(str, before), *map(str, self.command("--ready-fd", writing, *args))],
                env={**self.env, **GONE, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
                pass_fds=[writing],
            )
        os.close(writing)
        try:
            assert os.read(reading, 1) == b"\n", self.text()
        finally:
            os.close(reading)
        return self

    def text(self):
        """What it has printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """Ends it cleanly; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=LIMIT)
        self.process = None
        return code

    def player(self, *lines, before=(), words=(), opened=(), **settings):
        """@words: of its command line, which it ignores."""
        command = [*before, self.build / "tests" / "programs" / "player", *words]
        env = {**self.env, "TTMEM": "1", **settings}
        player = Player([str(word) for word in command], env, opened)
        self.players.append(player)
        player.play(*lines)
        return player

    def address(self):
        """Where it serves HTTP; a separate thread prints that, a moment later."""
        return wait_for(lambda: SERVES.findall(self.text()[self.said :]), "the address")[-1]

    def fetch(self, path, token=False):
        """(status, text) of its HTTP."""
        headers = {}
        if token:
            headers["Authorization"] = "Bearer " + (self.state / "http-token").read_text().strip()
        with contextlib.closing(http.client.HTTPConnection(self.address(), timeout=LIMIT)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def adopt(self, process):
        self.others.append(process)
        return process

    def run(self, *args, before=(), env=None, **options):
        return subprocess.run(
            [*map(str, before), str(self.build / "src" / "cli" / "ttmem"), *map(str, args)],
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            **options,
        )

    def is_late(self, result):
        """Whether a command waited in vain for a daemon that runs: two seconds, little on a busy machine."""
        if "ttmemd does not answer" not in result.stdout + result.stderr or not self.process:
            return False
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "TZ"  # not stopped by the test, nor killed

    def json(self, *args, **options):
        def ask():
            result = self.run(*args, "--json", **options)
            return None if self.is_late(result) else result

        result = wait_for(ask, "an answer of the daemon")
        assert result.returncode == 0, result.stderr
        return check_schema(json.loads(result.stdout))

    def leaks(self, pid, **options):
        """The reports of one process."""
        return [p for p in self.json("leaks", **options)["processes"] if p["pid"] == pid]

    def wait_for_leak(self, pid, **options):
        return wait_for(lambda: self.leaks(pid, **options), f"the leak report of {pid}")[0]

    def wait_for_recordings(self, count):
        """Until the flight recorder has written or refused so many files."""

        def done():
            flight = self.json("status")["flight"]
            return flight["files"] + flight["refused"] >= count

        wait_for(done, f"{count} recordings")

    def old_client(self):
        return OldClient(self.legacy)

    def close(self):
        for player in self.players:
            player.kill()
            player.process.stdin.close()
            player.process.stdout.close()
        for process in self.others:
            process.kill()
            process.wait()
        if self.process:
            self.kill()
        self.end_old_servers()
        self.end_keeper()

    def at_keepers_socket(self):
        """{pid: descriptors} of who has our keeper's socket: while one is being started, not only keepers."""
        path = f"{self.socket}.keeper"
        with open("/proc/net/unix", encoding="utf-8") as file:
            rows = [line.split() for line in file]
        sockets = {f"socket:[{row[6]}]" for row in rows if row[-1] == path}
        found = {int(pid): set(descriptors(pid).split()) for pid in os.listdir("/proc") if pid.isdigit()}
        return {pid: files for pid, files in found.items() if files & sockets}

    def keeper(self, holds=lambda files: True, besides=None):
        """Waits for a keeper with descriptors that are as they should be; returns its pid."""

        def search():
            return [
                pid
                for pid, files in self.at_keepers_socket().items()
                if pid != besides and command_of(pid) == "ttmem-keeper" and holds(files)
            ]

        return wait_for(search, "the keeper")[0]

    def old_servers(self):
        """The pids of the programs for old clients that belong to this daemon or to an earlier one of its socket."""
        mark = str(self.socket).encode()
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if mark in words and Path(os.fsdecode(words[0])).name == "ttmem-legacy":
                    found.append(pid)
        return found

    def end_old_servers(self):
        """One outlives a daemon that was killed."""
        while pids := self.old_servers():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def end_keeper(self):
        """A keeper would wait for the next daemon for a day. One that is being started has a child soon."""
        while pids := self.at_keepers_socket():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class OldClient:
    """Speaks the old protocol byte by byte; W72 unless told otherwise."""

    ALLOC, FREE, QUERY, RESPONSE, DUMP = 1, 2, 3, 4, 5
    HEAD = struct.Struct("<B3xiQB3xiQQ")

    def __init__(self, path, size=72):
        self.size = size
        self.socket = socket.socket(socket.AF_UNIX)
        # As an old client connects: it waits where the queue is full. A time-out of Python's does not.
        limit = struct.pack("ll", int(LIMIT / 2), 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.socket.connect(str(path))
        self.socket.settimeout(LIMIT / 2)

    def message(self, kind, device=0, size=0, type=0, address=0, pid=None):
        pid = os.getpid() if pid is None else pid
        stamp = time.time_ns() if kind == self.ALLOC else 0
        head = self.HEAD.pack(kind, device, size, type, pid, address, stamp)
        return head.ljust(self.size, b"\0")

    def alloc(self, device, type, address, size):
        self.socket.sendall(self.message(self.ALLOC, device, size, type, address))

    def free(self, device, address):
        self.socket.sendall(self.message(self.FREE, device, address=address))

    def query(self, device):
        """(dram, l1, l1_small, trace) of a device."""
        self.socket.sendall(self.message(self.QUERY, device, pid=0))
        answer = b""
        while len(answer) < self.size:
            part = self.socket.recv(self.size - len(answer))
            assert part, "the server hung up"
            answer += part
        assert answer[0] == self.RESPONSE
        return struct.unpack_from("<4Q", answer, 40)

    def close(self):
        self.socket.close()
