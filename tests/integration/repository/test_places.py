# SPDX-License-Identifier: Apache-2.0
"""The tests themselves: they pass wherever the clone lies."""

import os
import subprocess
import sys

import pytest

from common import shared_folder
from conftest import LIMIT, ROOT

# argv: the clone, the build folder, where both are to be found, and the command to run there.
MOVE = """
mount --bind "$1" "$3/the clone" && mount --bind "$2" "$3/the build" || exit 77
cd "$3/the clone" && shift 3 && exec "$@"
"""
PYTEST = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "other_user"]
# Where files lie does not depend on parameters.
PYTEST += ["--once"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others")
def test_tests_that_become_another_user_pass_in_a_closed_home(build_folder, clean_env):
    with shared_folder() as folder:
        home = folder / "home"
        for place in (home / "the clone", home / "the build"):
            place.mkdir(parents=True)
        home.chmod(0o700)
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", MOVE, "sh",
             ROOT, build_folder, home, *PYTEST, "tests/integration"],
            env={**clean_env, "TTMEM_BUILD": str(home / "the build")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * LIMIT,
        )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("no mounts here")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout, done.stdout
