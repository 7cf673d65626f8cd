# SPDX-License-Identifier: Apache-2.0
"""When .ci/run tries README's commands on a fresh machine. The trial itself is ./dev fresh-test."""

import re
import shutil
import subprocess

import pytest

from conftest import LIMIT, ROOT

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")


@pytest.fixture
def repository(tmp_path):
    """Call as repository(PATH): commits a change of that file."""

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT)  # fmt: skip

    def change(path):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as text:
            text.write("more\n")
        git("add", "-A")
        git("commit", "-q", "-m", path)

    git("init", "-q")
    for path in ("README.md", "dev", "src/meson.build"):
        change(path)
    change.folder = tmp_path
    return change


def is_due(folder):
    function = re.search(r"^fresh_is_due\(\) {\n.*?^}\n", (ROOT / ".ci" / "run").read_text(), re.M | re.S)[0]
    done = subprocess.run(["bash", "-c", f"{function}fresh_is_due"], cwd=folder, timeout=LIMIT, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("path", ["README.md", "dev", "tools/dev/setup.sh", ".ci/run", "meson_options.txt", "meson.build",
                                  "src/base/meson.build", "tests/fresh/run.sh"])  # fmt: skip
def test_a_recent_change_of_what_a_fresh_machine_meets_is_tried(repository, path):
    for _ in range(20):
        repository("src/base/text.c")
    assert not is_due(repository.folder)
    repository(path)
    assert is_due(repository.folder)


def test_an_old_change_is_not_tried_again_and_a_short_history_is(repository):
    assert is_due(repository.folder)  # too little is known
    for _ in range(20):
        repository("docs/faq.md")
    assert not is_due(repository.folder)


def test_readme_has_the_commands_that_are_tried():
    script = (ROOT / "tests" / "fresh" / "run.sh").read_text()
    function = re.search(r"^commands\(\) {\n.*?^}\n", script, re.M | re.S)[0]

    def commands(*words):
        return subprocess.run(["sh", "-c", f"{function}commands {' '.join(words)}"], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, timeout=LIMIT, check=True).stdout.splitlines()  # fmt: skip

    assert commands() == ["./dev demo", "./dev test"]
    assert commands("unit", "web") == ["./dev demo", "./dev test unit web"]
