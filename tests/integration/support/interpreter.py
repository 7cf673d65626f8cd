# SPDX-License-Identifier: Apache-2.0
"""Python programs that use the package, from the build folder or built for their interpreter."""

import subprocess
import textwrap

import pytest

from conftest import LIMIT

# Before each program: what most of them need.
HEAD = """
import json, os, sys, threading
import ttmem

def rows(**options):
    return sorted([b["device"], b["type"], b["address"], b["size"], b["name"], b["phase"]]
                  for b in ttmem.buffers(**options))

def mine():
    return rows(pid=os.getpid())

"""


class Interpreter:
    def __init__(self, which, package, build, env):
        if not list((package / "ttmem").glob("_ttmem.*.so")):
            pytest.skip("the Python package is not built")
        self.which = which
        self.package = package
        self.env = {
            **env,
            "PYTHONPATH": str(self.package),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TTMEM_COMMAND": str(build / "src" / "cli" / "ttmem"),
            "TT_ALLOC_SERVER_SOCKET": "none",
            "TTMEM": "1",
        }
        self.started = []

    def settings(self, changes):
        """A change to None removes a variable."""
        env = {**self.env, **changes}
        return {name: str(value) for name, value in env.items() if value is not None}

    def run(self, program, *args, head=HEAD, errors="", **changes):
        """Runs a program that must succeed; returns its output. errors: what it prints on standard error."""
        result = subprocess.run(
            [self.which.path, "-c", head + textwrap.dedent(program), *map(str, args)],
            env=self.settings(changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == errors
        return result.stdout

    def start(self, program, *args, **changes):
        """Starts a program that prints "ready" and then lives until its input ends."""
        process = subprocess.Popen(
            [self.which.path, "-c", HEAD + textwrap.dedent(program) + HOLD, *map(str, args)],
            env=self.settings(changes),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    def close(self):
        for process in self.started:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


HOLD = """
print("ready", flush=True)
sys.stdin.read()
"""
