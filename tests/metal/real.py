# SPDX-License-Identifier: Apache-2.0
"""A real tt-metal in its mock mode: what agree.py and cost.py need to build and run a program with one."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Metal:
    """A tt-metal that is built, as a folder to run programs with."""

    def __init__(self, folder, scratch):
        self.folder = folder
        self.scratch = scratch
        self.root = scratch / "root"
        self.cache = scratch / "cache"
        runtime = self.root / "tt_metal"
        runtime.mkdir(parents=True)
        for part in (self.home() / "tt_metal").iterdir():
            (runtime / part.name).symlink_to(part)
        compiler = self.root / "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
        compiler.parent.mkdir(parents=True)
        compiler.write_text("#!/bin/sh\necho 1.0\n")
        compiler.chmod(0o755)
        (runtime / "pre-compiled").mkdir(exist_ok=True)

    def home(self):
        """Its sources: mock mode reads descriptions of machines there that are not installed."""
        for place in (Path(os.environ.get("TT_METAL_HOME", "/nonexistent")), self.folder):
            if (place / "tt_metal/third_party/umd/tests/cluster_descriptor_examples").is_dir():
                return place
        sys.exit(f"{self.folder} has no machine descriptions: set TT_METAL_HOME to tt-metal's sources")

    def compile(self, name, libraries=None):
        """@libraries: a folder with others than the installed ones."""
        libraries = libraries or self.folder / "lib"
        program = self.scratch / f"{name}-{libraries.name}"
        if program.exists():
            return program
        command = ["g++", "-std=c++20", "-O1", "-w", HERE / f"{name}.cpp", "-o", program]
        command += [f"-I{self.folder}/include", f"-I{self.folder}/include/metalium-thirdparty"]
        command += ["-DFMT_HEADER_ONLY", "-DSPDLOG_FMT_EXTERNAL"]
        command += [f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        command += ["-ltt_metal", "-ltt_stl"]
        subprocess.run(command, check=True)
        return program

    def environment(self, slow):
        env = dict(os.environ, TT_METAL_RUNTIME_ROOT=str(self.root), TT_METAL_CACHE=f"{self.cache}/")
        env["TT_LOGGER_LEVEL"] = "fatal"
        for name in ("TT_METAL_SLOW_DISPATCH_MODE", "TT_METAL_ALLOCATOR_MODE_HYBRID"):
            env.pop(name, None)
        return dict(env, TT_METAL_SLOW_DISPATCH_MODE="1") if slow else env

    def last_words(self):
        return (self.scratch / "log").read_text(errors="replace").strip()[:500]

    def call_firmware_built(self):
        """Firmware needs a compiler that is not here, and no buffer needs firmware."""
        for folder in self.cache.glob("tt-metal-cache*"):
            done = self.root / "tt_metal/pre-compiled" / folder.name.removeprefix("tt-metal-cache")
            done.mkdir(exist_ok=True)
