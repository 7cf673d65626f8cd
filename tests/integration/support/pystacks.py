# SPDX-License-Identifier: Apache-2.0
"""Python programs whose stacks are checked, with an extension like C++ bindings."""

import json
import shutil
import subprocess
import textwrap

import pytest

from conftest import LIMIT, ROOT
from cxx import run

SOURCE = ROOT / "tests" / "programs" / "step.cpp"

# Before each program. show() prints the stack of every buffer that has a name.
HEAD = """\
import json, os, sys
import ttmem, step

def show():
    rows = ttmem.buffers(pid=os.getpid())
    print(json.dumps({row["name"]: row["stack"] for row in rows}))

"""


MADE = {}  # folders of extensions


@pytest.fixture
def extensions(build, interpreter, tmp_path_factory):
    """The folder of the extension, built with frame pointers or without."""
    if not shutil.which("g++") or not interpreter.include:
        pytest.skip("no g++, or no headers of Python")
    library = build / "src" / "lib"

    def extension(pointers):
        key = interpreter.version, pointers
        if key not in MADE:
            folder = tmp_path_factory.mktemp("extension")
            run("g++", "-O1", "-g", f"-f{'no-' if pointers else ''}omit-frame-pointer",
                "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-pthread", "-Wl,--build-id",
                "-I", interpreter.include, "-I", ROOT / "include", SOURCE, "-o", folder / "step.so",
                "-L", library, "-lttmem", f"-Wl,-rpath,{library}")
            MADE[key] = folder
        return MADE[key]

    return extension


class Program:
    """A Python program in a file, the extension, and its stacks."""

    def __init__(self, python, folder, tmp_path):
        self.python = python
        self.folder = folder
        self.path = tmp_path / "model.py"
        self.text = ""

    def settings(self, changes):
        return self.python.settings({
            "PYTHONPATH": f"{self.python.package}:{self.folder}",
            "TTMEM_STACKS": "fp",
            "TTMEM_STACK_DEPTH": "32",
            **changes,
        })

    def write(self, text):
        self.text = HEAD + textwrap.dedent(text)
        self.path.write_text(self.text)
        return self

    def run(self, text, *command, **changes):
        """What it printed."""
        self.write(text)
        result = subprocess.run(
            [*command, self.python.which.path, self.path],
            env=self.settings(changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert result.returncode == 0, result.stderr
        return result

    def stacks(self, text, **changes):
        return json.loads(self.run(text, **changes).stdout)

    def line(self, mark):
        (number,) = [
            n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith(f"# {mark}")
        ]
        return number

    def is_own(self, frame):
        return frame["python"] and frame["file"] == str(self.path)

    def check(self, stack, *names):
        """The frames, innermost first: for Python a function at the line that is marked with it, or a
        pair of both; for C++ "c:name"."""
        assert [frame_name(frame) for frame in stack] == [
            name if isinstance(name, str) and name.startswith("c:")
            else f"{name}:{self.line(name)}" if isinstance(name, str)
            else f"{name[0]}:{self.line(name[1])}"
            for name in names
        ]
        assert all(self.is_own(frame) for frame in stack if frame["python"])

    def python_part(self, stack):
        return [frame for frame in stack if frame["python"]]


def frame_name(frame):
    if frame["python"]:
        return f"{frame['function']}:{frame['line']}"
    # Without arguments and namespaces: the demangler is not under test.
    return "c:" + (frame["function"] or "?").split("(")[0].split("::")[-1]


@pytest.fixture
def program(python, extensions, tmp_path):
    return Program(python, extensions(True), tmp_path)


IN_C = ["c:place", "c:load", "c:step_take"]  # what step.take() does
