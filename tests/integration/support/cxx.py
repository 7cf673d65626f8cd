# SPDX-License-Identifier: Apache-2.0
"""Compiling C and C++ as users of an installed tree do: with the flags of pkg-config."""

import os
import shutil
import subprocess

import pytest

from conftest import LIMIT

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]


def run(*command, **options):
    """Runs a command that must succeed; returns its output."""
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT * 2,
        **options,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


class Installed:
    """An installed tree in a folder other than the one it was configured for."""

    def __init__(self, build_folder, folder):
        run("meson", "install", "-C", build_folder, "--no-rebuild", "--destdir", folder)
        (pc,) = folder.glob("**/pkgconfig/ttmem.pc")
        self.prefix = pc.parents[2]

    def flags(self, package="ttmem"):
        """What goes on the command line; programs find the library without being told."""
        env = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        text = run("pkg-config", f"--define-variable=prefix={self.prefix}", "--cflags", "--libs",
                   package, env=env)
        return [*text.split(), f"-Wl,-rpath,{self.prefix / 'lib'}"]

    def compile(self, source, program, *flags, compiler="g++", package="ttmem"):
        run(compiler, "-O1", "-g", "-pthread", *WARNINGS, *flags, source, "-o", program,
            *self.flags(package))
        return program


def installed_tree(build_folder, tmp_path_factory):
    if not (build_folder / "src" / "lib" / "libttmem.so").exists():
        pytest.skip("libttmem is not built")
    if not shutil.which("g++"):
        pytest.skip("no g++")
    return Installed(build_folder, tmp_path_factory.mktemp("install"))
