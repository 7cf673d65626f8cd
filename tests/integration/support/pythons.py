# SPDX-License-Identifier: Apache-2.0
"""Every CPython that is installed here, and the package built for each of them.

Tests run with the interpreter that runs pytest. Those that depend on the version are marked with
every_python, and also run with each other CPython from 3.9 to 3.13 that is found with its headers: in the
folders in TTMEM_TEST_PYTHONS, among pyenv's, as python3.N on PATH. TTMEM_TEST_PYTHON=PATH selects a single
one.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LIMIT, ROOT
from cxx import run

MINORS = range(9, 14)
OLDER_MINORS = range(6, 9)  # the package does not support them, the old client's module does
READ_MINORS = range(11, 14)  # memory is read there, see docs/stacks.md

QUESTION = """
import json, os, sys, sysconfig
include = sysconfig.get_path("include")
print(json.dumps({
    "path": sys.executable,
    "version": sys.version_info[:3],
    "include": include if os.path.exists(os.path.join(include, "Python.h")) else None,
    "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    "is_usual": sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
                and not sysconfig.get_config_var("Py_GIL_DISABLED"),
}))
"""


class Python:
    """One of them."""

    def __init__(self, facts):
        self.path = facts["path"]
        self.version = tuple(facts["version"])
        self.include = facts["include"]
        self.suffix = facts["suffix"]
        self.is_usual = facts["is_usual"]
        self.reads_memory = self.version[0] == 3 and self.version[1] in READ_MINORS

    def __str__(self):
        return ".".join(map(str, self.version))

    def is_wanted(self, minors):
        return self.is_usual and self.version[1] in minors and (self.include or minors == OLDER_MINORS)


def asked(path):
    """What a program says about itself; None if it is not a working Python."""
    try:
        result = subprocess.run([path, "-I", "-c", QUESTION], stdin=subprocess.DEVNULL, check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT)
        return Python(json.loads(result.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None


def places(minors):
    """Where others may be, by minor version."""
    for folder in filter(None, os.environ.get("TTMEM_TEST_PYTHONS", "").split(os.pathsep)):
        for minor in minors:
            yield from (Path(folder) / place / f"python3.{minor}" for place in ("", "bin"))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    # os.path: a variable that came from another user may name what this one cannot enter.
    for folder in sorted(pyenv.glob("3.*")) if os.path.isdir(pyenv) else ():
        if re.fullmatch(rf"3\.({'|'.join(map(str, minors))})\.\d+", folder.name):
            yield folder / "bin" / "python"


@functools.lru_cache
def default():
    """The one that runs the tests."""
    return asked(os.environ.get("TTMEM_TEST_PYTHON", sys.executable))


def add_others(found, minors):
    for path in filter(os.path.exists, places(minors)):
        python = asked(path)
        if python and python.is_wanted(minors):
            found.setdefault(python.version, python)
    for minor in set(minors) - {version[1] for version in found}:
        path = shutil.which(f"python3.{minor}")
        python = asked(path) if path else None
        if python and python.is_wanted(minors):
            found.setdefault(python.version, python)
    return list(found.values())


@functools.lru_cache
def every():
    """The default, and one of each other version."""
    if "TTMEM_TEST_PYTHON" in os.environ:
        return [default()]
    return add_others({default().version: default()}, MINORS)


@functools.lru_cache
def older():
    """Those that are too old for the package."""
    return [] if "TTMEM_TEST_PYTHON" in os.environ else add_others({}, OLDER_MINORS)


def once_for(pythons):
    return pytest.mark.parametrize("interpreter", pythons, ids=str, indirect=True)


every_python = once_for(every())
# The same for those whose memory is read.
every_reader = once_for([python for python in every() if python.reads_memory])

EXTENSIONS = {
    "_frames": ["_frames.c", "python/python-frames.c", "python/python-layout.c"],
    "_ttmem": ["_ttmem.c", "python/python-arguments.c"],
}
MADE = {}  # folders of packages


def package(python, build, tmp_path_factory):
    """The folder with the package: the build's own, or one built for this interpreter as in setup.py."""
    if python.path == sys.executable:
        return build / "python"
    if python.version not in MADE:
        folder = tmp_path_factory.mktemp(f"python-{python}")
        source, library = ROOT / "python", build / "src" / "lib"
        shutil.copytree(source / "ttmem", folder / "ttmem")
        for path in source.glob("*.py"):
            shutil.copy(path, folder)
        stable = python.version >= (3, 10)
        for name, files in EXTENSIONS.items():
            target = folder / "ttmem" / (name + (".abi3.so" if stable else python.suffix))
            run("gcc", "-O1", "-g", "-Wall", "-Werror", "-shared", "-fPIC", "-D_GNU_SOURCE",
                *(["-DPy_LIMITED_API=0x030A0000"] if stable else []), "-I", source,
                "-I", ROOT / "include", "-isystem", python.include,
                *(source / file for file in files), "-o", target, "-L", library, "-lttmem",
                f"-Wl,-rpath,{library}")
        MADE[python.version] = folder
    return MADE[python.version]
