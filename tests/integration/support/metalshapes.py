# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for releases of tt-metal (tests/programs/metal), and for libraries that differ from them in one thing."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

from conftest import ROOT
from cxx import run

SOURCES = ROOT / "tests" / "programs" / "metal"
FLAGS = ["-std=c++20", "-g", "-O0", "-fPIC", "-pthread", "-fvisibility-inlines-hidden", "-Wall", "-Wextra",
         "-Werror"]  # fmt: skip


def compile_part(name, *flags):
    """An object of the stand-ins, compiled once for all runs. Flags count only if the source mentions what they define."""
    text = "".join((SOURCES / source).read_text() for source in (f"{name}.cpp", "metal.hpp"))
    flags = [*FLAGS, *(flag for flag in flags if re.search(rf"\b{flag[2:].partition('=')[0]}\b", text))]
    store = Path(os.environ["TTMEM_BUILD"]) / "stand-ins"
    store.mkdir(exist_ok=True)
    part = store / f"{name}-{hashlib.sha256(repr((flags, text)).encode()).hexdigest()}.o"
    if not part.exists():
        with tempfile.TemporaryDirectory(dir=store) as folder:
            run("g++", *flags, "-c", SOURCES / f"{name}.cpp", "-o", Path(folder) / "part.o")
            (Path(folder) / "part.o").rename(part)
    return part


class Shapes:
    """Stand-ins. Call as shapes(62): the folder of one."""

    def __init__(self, folder):
        self.folder = folder
        self.made = {}

    def __call__(self, shape):
        if shape not in self.made:
            self.made[shape] = self.make(self.folder / str(shape), shape, module=True)
            for name in ("traces", "short"):
                self.link(self.made[shape], name, self.compile(name, shape))
        return self.made[shape]

    def compile(self, name, shape, *flags):
        return compile_part(name, f"-DMETAL_SHAPE={shape}", *flags)

    def link(self, folder, name, thing, *flags):
        run("g++", thing, "-pthread", *flags, "-o", folder / name, f"-L{folder}", "-ltt_metal", f"-Wl,-rpath,{folder}")

    def make(self, folder, shape, *flags, module=False):
        """libtt_metal.so, a program linked with it, and if wanted the same as a module with its loader."""
        folder.mkdir(parents=True)
        parts = [self.compile(name, shape, *flags) for name in ("library", "tracker", "umd")]
        run("g++", "-shared", "-pthread", *parts, "-o", folder / "libtt_metal.so")
        play = self.compile("play", shape, *flags)
        self.link(folder, "play", play)
        if module:
            self.link(folder, "play.so", play, "-shared")
            run("cc", SOURCES / "loader.c", "-o", folder / "loader")
        return folder
