# SPDX-License-Identifier: Apache-2.0
"""What the test_life_* files share: a program that waits to be inspected, and its books."""

import json
import os
import socket
import subprocess

import pytest

from conftest import LIMIT

# In a program: print that it is ready, and wait until it may continue.
PAUSE = r"""
#include <stdio.h>
static inline void ready(void) { puts("ready"); fflush(stdout); (void)!getchar(); }
"""


class App:
    """A program under test; it prints "ready" whenever it can be inspected."""

    def __init__(self, build, command, env):
        self.build = build
        self.process = subprocess.Popen(
            [str(word) for word in command],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines = []

    def wait_ready(self):
        for line in self.process.stdout:
            if line == "ready\n":
                return self
            self.lines.append(line.strip())
        raise AssertionError(f"ended before it was ready: {self.process.wait(LIMIT)}")

    def books(self):
        """All of its books, as peek sees them."""
        return peek(self.build, str(self.process.pid))

    def book(self):
        (book,) = self.books()
        return book

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self):
        """Lets it run to its end; returns its output."""
        self.go()
        out, _ = self.process.communicate(timeout=LIMIT)
        assert self.process.returncode == 0
        return self.lines + out.split("\n")


def peek(build, *args, pass_fds=()):
    program = build / "tests" / "programs" / "peek"
    result = subprocess.run(
        [program, *args], pass_fds=pass_fds, capture_output=True, text=True, timeout=LIMIT
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def device(book, number=0):
    (found,) = [entry for entry in book["devices"] if entry["device"] == number]
    return found


class Listener:
    """Receives books, as `ttmem run` does; for reading those of exited processes."""

    def __init__(self, build, path):
        self.build = build
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(path))
        self.socket.listen(64)
        self.socket.settimeout(LIMIT)

    def book(self):
        """The next book, whose process has exited."""
        connection, _ = self.socket.accept()
        with connection:
            _, fds, _, _ = socket.recv_fds(connection, 16, 2)
        try:
            (book,) = peek(self.build, "--fd", str(fds[0]), pass_fds=fds[:1])
        finally:
            for fd in fds:
                os.close(fd)
        return book


@pytest.fixture
def track(clean_env):
    """An environment in which tracking is on."""
    return {**clean_env, "TTMEM": "1"}


@pytest.fixture
def start(build, track):
    """Call as start(program, ...): an App that is ready."""
    if not (build / "tests" / "programs" / "peek").exists():
        pytest.skip("peek is not built")
    apps = []

    def start_one(*command, env=None):
        app = App(build, command, {**track, **(env or {})})
        apps.append(app)
        return app.wait_ready()

    yield start_one
    for app in apps:
        app.process.kill()
        app.process.communicate()


@pytest.fixture
def listener(build, track, tmp_path):
    """A Listener to which programs in the environment "track" send their books."""
    path = tmp_path / "offers"
    listening = Listener(build, path)
    track["TTMEM_OFFER"] = str(path)
    yield listening
    listening.socket.close()
