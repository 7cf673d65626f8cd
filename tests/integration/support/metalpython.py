# SPDX-License-Identifier: Apache-2.0
"""Python programs of tt-metal that do not know ttmem, with a stand-in for ttnn (tests/programs/metal/ttnn)."""

import json
import os
import shutil
import subprocess
import textwrap

import pytest

from cxx import run
from metalshapes import SOURCES, compile_part

APP = """\
import os, sys
import ttnn

class Model:
    def __init__(self, device):
        self.weights = ttnn.zeros(device, 4096)  # weights

    def forward(self, device):
        return ttnn.linear(device, 2048)  # forward

device = ttnn.open_device(0)
model = Model(device)
kept = model.forward(device)
"""

WAIT = """
print("pid", os.getpid(), flush=True)
sys.stdin.read()
"""

END = """
os._exit(0)  # its device was not closed
"""


def install(build, folder, *flags):
    """A folder that has the stand-in for ttnn in it, as after pip install."""
    if not (build / "src" / "metal" / "libttmem-metal.so").exists() or not shutil.which("g++"):
        pytest.skip("libttmem-metal.so is not built, or there is no g++")
    if not (build / "python" / "ttmem" / "_frames.abi3.so").exists():
        pytest.skip("the Python package is not built")
    folder = folder / "site-packages"
    shutil.copytree(SOURCES / "ttnn", folder / "ttnn")
    library = folder / "ttnn" / "libtt_metal.so"
    parts = {name: compile_part(name, "-DMETAL_SHAPE=70", *flags) for name in ("library", "tracker", "umd", "bind")}
    bind = parts.pop("bind")
    run("g++", "-shared", *parts.values(), "-o", library)
    run("g++", "-shared", bind, "-o", folder / "ttnn" / "_ttnn.so", f"-L{library.parent}", "-ltt_metal",
        "-Wl,-rpath,$ORIGIN")
    return folder


@pytest.fixture(scope="module")
def packages(build, tmp_path_factory):
    return install(build, tmp_path_factory.mktemp("lib"))


@pytest.fixture
def app(packages, clean_env, tmp_path):
    """Call as app(text): the program's path; app.env finds the stand-in, not ttmem."""

    class App:
        env = {**clean_env, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        text = ""

        def __call__(self, text, name="app.py"):
            self.text = textwrap.dedent(text)
            path = tmp_path / name
            path.write_text(self.text)
            return path

        def line(self, mark):
            (number,) = [n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith(f"# {mark}")]
            return number

    return App()


@pytest.fixture
def report(ttmem, app, tmp_path):
    """Call as report(command...): the completed "ttmem run --metal" and its report."""

    def run_it(*command, cwd=None, **env):
        path = tmp_path / "report.json"
        done = ttmem("run", "--quiet", "--json", path, "--metal", "--", *command, cwd=cwd,
                     env={**app.env, **env}, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout, json.loads(path.read_text())

    return run_it


def site(row):
    return row["site"]["function"], os.path.basename(row["site"]["file"]), row["site"]["line"]


def leaks(document):
    return {leak["bytes"]: site(leak) for leak in document["leaks"]}
