# SPDX-License-Identifier: Apache-2.0
"""Files that a book names: the daemon may read more than the book's owner, and tells nobody of it."""

import json
import os
import subprocess

import pytest

from common import become
from world import wait_for

MALLORY = 54321

pytestmark = [
    pytest.mark.other_user,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others"),
]


@pytest.fixture
def folder(ttmemd):
    """Folders of equal names' length, each with the same program."""
    for parent in (*ttmemd.folder.parents, ttmemd.folder):
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    for name, mode in (("ours", 0o755), ("open", 0o755), ("shut", 0o700)):
        (ttmemd.folder / name).mkdir()
        # Without a build id, which would have to be guessed.
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id",
                        ttmemd.build / "tests" / "programs" / "hostile", ttmemd.folder / name / "app"], check=True)
        (ttmemd.folder / name / "app").chmod(0o755)
        (ttmemd.folder / name).chmod(mode)
    return ttmemd.folder


def start(ttmemd, folder, program, *words):
    process = ttmemd.adopt(
        subprocess.Popen(
            [*become(MALLORY), folder / program, *map(str, words)],
            env={**ttmemd.env, "TTMEM": "1", "TTMEM_STACKS": "unwind", "LD_LIBRARY_PATH": str(ttmemd.build / "src" / "lib")},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )
    )  # fmt: skip
    assert process.stdout.readline()
    process.stdout.close()
    return process


def functions(ttmemd, pid):
    """Those of the program, in the daemon's answer."""

    def stack():
        status, body = ttmemd.fetch("/api/v1/buffers?limit=10", token=True)
        assert status == 200, body
        return next((row["stack"] for row in json.loads(body)["buffers"] if row["pid"] == pid), None)

    frames = wait_for(stack, "the buffer")
    return [frame["function"] for frame in frames if frame["module"] == "app"]


@pytest.mark.parametrize("place", ["open", "shut", "link"])
def test_a_book_names_only_files_that_its_owner_may_reach(ttmemd, folder, place):
    """The daemon is not there yet when the book is forged: it knows nothing from before."""
    if place == "link":
        (folder / "link").mkdir(0o755)
        (folder / "link" / "app").symlink_to("../shut/app")
    process = start(ttmemd, folder, "ours/app", "module", folder / "ours" / "app", folder / place / "app")
    ttmemd.start("--http", "127.0.0.1:0")
    names = functions(ttmemd, process.pid)
    if place == "open":
        assert "main" in names
    else:
        assert names and all(name.startswith("app+0x") for name in names)


def test_of_an_exited_process_neither(ttmemd, folder):
    process = start(ttmemd, folder, "ours/app", "module", folder / "ours" / "app", folder / "shut" / "app")
    ttmemd.start("--http", "127.0.0.1:0", "--scan-interval", "1")
    wait_for(lambda: ttmemd.json("status")["books"] == 1, "the process")
    process.kill()
    report = ttmemd.wait_for_leak(process.pid)
    names = [frame["function"] for frame in report["buffers"][0]["stack"] if frame["module"] == "app"]
    assert names and all(name.startswith("app+0x") for name in names)


def test_what_a_process_has_mapped_has_names_wherever_it_is(ttmemd, folder):
    """Its folder was closed after it was started."""
    process = start(ttmemd, folder, "open/app", "descriptors", 0, 0)
    (folder / "open").chmod(0o700)
    ttmemd.start("--http", "127.0.0.1:0")
    assert "main" in functions(ttmemd, process.pid)
