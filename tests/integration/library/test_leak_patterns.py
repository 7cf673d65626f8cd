# SPDX-License-Identifier: Apache-2.0
"""docs/leak-patterns.md: every command in it is run, and prints what the document says.

What differs from run to run is masked as the document says: TIME for times and durations, PID, and source
files without their folder.
"""

import re
import shutil
import subprocess

import pytest

from conftest import LIMIT, ROOT
from cxx import installed_tree

DOCUMENT = ROOT / "docs" / "leak-patterns.md"
EXAMPLES = ROOT / "examples" / "leaks"


@pytest.fixture(scope="module")
def installed(build_folder, tmp_path_factory):
    return installed_tree(build_folder, tmp_path_factory)


def sections():
    """[(title, [(command, output)])] of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        commands = []
        for block in re.findall(r"^```console\n(.*?)^```$", body, re.M | re.S):
            commands += re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
        if commands:
            yield title, commands


def test_every_example_is_in_the_document():
    named = DOCUMENT.read_text(encoding="utf-8")
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix != ".h"]
    assert len(files) == 5 and all(f"examples/leaks/{name}" in named for name in files)


def mask(text, folder):
    text = text.replace(f"{folder}/", "")
    text = re.sub(r"after [\d.]+ \w+;", "after TIME;", text)
    text = re.sub(r" at ([\d-]+ )?\d\d:\d\d:\d\d \(pid \d+ ", " at TIME (pid PID ", text)
    return re.sub(r" +[\d.]+ \w+  step", "    TIME  step", text)


@pytest.mark.parametrize("title, commands", sections(), ids=lambda value: str(value)[:20])
def test_the_output_is_as_the_document_says(installed, clean_env, tmp_path, title, commands):
    folder = tmp_path / "leaks"
    shutil.copytree(EXAMPLES, folder)
    prefix = installed.prefix
    if "python3" in str(commands) and not (prefix / "lib" / "python" / "ttmem").exists():
        pytest.skip("the Python package is not built")
    # The tree lies elsewhere than it was configured for; and it is Debian's Python that it is for.
    settings = (prefix / "lib" / "pkgconfig" / "ttmem.pc").read_text()
    (tmp_path / "ttmem.pc").write_text(re.sub("^prefix=.*", f"prefix={prefix}", settings))
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    env = {
        **clean_env,
        "PATH": f"{tmp_path}:{prefix}/bin:{clean_env['PATH']}",
        "PKG_CONFIG_PATH": str(tmp_path),
        "PYTHONPATH": f"{prefix}/lib/python",
    }
    for command, output in commands:
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
        )
        assert mask(done.stdout, folder) == output, f"{title}: {command}"
