# SPDX-License-Identifier: Apache-2.0
"""Runs of pytest with the plugin of the build, for the tests of the plugin."""

import re
import subprocess
import sys
import textwrap

from conftest import LIMIT

START = """
import os, subprocess, sys, threading
import pytest, ttmem

def leak(name, size=4096, kind="DRAM", address=[0x1000]):
    address[0] += 0x10000
    ttmem.alloc(0, kind, address[0], size, name)
    return address[0]

def clean(name, size=4096, kind="DRAM"):
    ttmem.free(0, leak(name, size, kind), kind)
"""

CHILD = "import ttmem; ttmem.alloc(3, 'L1', 0x7000, 512, 'of a child'); print(flush=True); input()"


class Run:
    """The output of a run of pytest, and its result for each test."""

    def __init__(self, result):
        self.code = result.returncode
        self.text = result.stdout + result.stderr
        self.leaked = set(re.findall(r"^LEAKED \S+::(\S+)", self.text, re.M))
        self.over = set(re.findall(r"^OVER LIMIT \S+::(\S+)", self.text, re.M))
        self.failed = set(re.findall(r"^FAILED \S+::(\S+)", self.text, re.M))

    def section(self, test):
        """The report of a test that failed."""
        found = re.search(rf"^_+ {re.escape(test)} _+\n(.*?)(?=^[_=-]{{6}})", self.text, re.M | re.S)
        assert found, self.text
        return found[1]


class Runner:
    """Call as run(tests, *options, **settings): a Run of those tests, below START."""

    def __init__(self, build, env, folder):
        self.build = build
        self.folder = folder
        self.env = {
            **env,
            "PYTHONPATH": str(build / "python"),
            "TTMEM_COMMAND": str(build / "src" / "cli" / "ttmem"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CHILD": CHILD,
        }

    def __call__(self, tests, *options, plugin=True, ttmem="--ttmem", start=START, words=None, **settings):
        path = self.folder / "test_it.py"
        path.write_text(start + textwrap.dedent(tests))
        words = [*(words or [sys.executable, "-m", "pytest"]), "-p", "no:cacheprovider"]
        words += ["-p", "ttmem.pytest_plugin"] if plugin else []
        words += [*filter(None, [ttmem]), *map(str, options), str(path)]
        result = subprocess.run(
            words,
            cwd=self.folder,
            env={**self.env, **settings},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return Run(result)
