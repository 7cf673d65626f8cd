# SPDX-License-Identifier: Apache-2.0
"""Build folders: a program that has come or gone since a folder was configured counts."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import LIMIT, ROOT

SCRIPTS = ". tools/dev/common.sh; . tools/dev/build.sh; "


def dev(command, folder=ROOT, path=None):
    """Run a function of ./dev in a tree."""
    done = subprocess.run(
        ["sh", "-c", SCRIPTS + command],
        cwd=folder,
        env={**os.environ, "PATH": str(path)} if path else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def path_without(tmp_path):
    """A function that makes a folder with every program of PATH except one."""

    def make(hidden):
        # A name without that of the program: paths of this folder are in what meson writes.
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for place in reversed(os.environ["PATH"].split(":")):
            for program in os.scandir(place) if os.path.isdir(place) else []:
                link = folder / program.name
                link.unlink(missing_ok=True)
                link.symlink_to(program.path)
        (folder / hidden).unlink(missing_ok=True)
        return folder

    return make


@pytest.fixture
def tree(tmp_path):
    """The sources, and no build folder."""
    folder = tmp_path / "tree"
    leave = shutil.ignore_patterns(".git", "build*", "dist", "fuzz-crashes", "shared")
    shutil.copytree(ROOT, folder, ignore=lambda place, names: leave(place, names) if place == str(ROOT) else [])
    return folder


@pytest.mark.skipif(not shutil.which("scdoc"), reason="no scdoc")
def test_a_program_that_comes_after_the_first_configuration_is_used_and_one_that_goes_is_not(tree, path_without):
    configure = "configure build -Dlibrary_only=true -Dtests=false"
    hidden = path_without("scdoc")

    dev(configure, tree, hidden)
    assert "ttmem.1" not in (tree / "build" / "build.ninja").read_text()

    dev(f"{configure} && compile build docs/man/ttmem.1", tree)
    assert (tree / "build" / "docs" / "man" / "ttmem.1").read_text().startswith('.\\" ')

    dev(configure, tree, hidden)
    assert "ttmem.1" not in (tree / "build" / "build.ninja").read_text()


def test_a_compiler_cache_that_has_gone_is_not_called(tree, path_without):
    configure = "configure build -Dlibrary_only=true -Dtests=false"
    path = path_without("ccache")
    program, rules = path / "ccache", tree / "build" / "build.ninja"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] || exec "$@"\n')
    program.chmod(0o755)

    dev(configure, tree, path)
    assert "ccache" in rules.read_text()
    program.unlink()
    dev(configure, tree, path)
    assert "ccache" not in rules.read_text()


def test_nothing_is_configured_again_if_nothing_has_changed(tree):
    configure = "configure build -Dlibrary_only=true -Dtests=false"
    dev(configure, tree)
    rules = tree / "build" / "build.ninja"
    before = rules.stat()
    dev(configure, tree)
    assert (rules.stat().st_ino, rules.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_every_program_that_may_be_missing_is_compared(path_without):
    optional = set()
    for file in [ROOT / "meson.build", *ROOT.glob("[!b.]*/**/meson.build")]:
        optional |= set(re.findall(r"find_program\('([^']*)',\s*required:", file.read_text()))
    assert {"npm", "scdoc"} <= optional
    for program in optional:
        if shutil.which(program):
            assert dev("found") != dev("found", path=path_without(program)), program


def test_headers_of_python_and_the_page_of_a_release_are_compared(tree):
    assert dev("found") != dev("PYTHON=/bin/false; found")
    before = dev("found", tree)
    (tree / "web" / "built").mkdir(exist_ok=True)
    (tree / "web" / "built" / "SHA256SUMS").touch()
    assert dev("found", tree) != before
