# SPDX-License-Identifier: Apache-2.0
"""Recordings that ttmemd keeps: whose they are, who may read them, and what one user can take from another."""

import json
import os
import subprocess

import pytest
from common import become
from conftest import LIMIT
from world import wait_for

OWNER, OTHER = 64901, 64902

pytestmark = pytest.mark.other_user


def read_as(user, path):
    """Whether a user can read a file."""
    result = subprocess.run([*become(user), "cat", str(path)], capture_output=True, timeout=LIMIT, check=False)
    return result.returncode == 0 and len(result.stdout) > 0


def recording_of(ttmemd, pid):
    return wait_for(lambda: [p["recording"] for p in ttmemd.leaks(pid) if p["recording"]], f"the file of {pid}")[0]


def leave_something(ttmemd, user, *lines):
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 secret", *lines, before=become(user))
    player.kill()
    return player.process.pid


def test_a_recording_is_for_its_owner_and_root(ttmemd):
    ttmemd.start()
    path = recording_of(ttmemd, leave_something(ttmemd, OWNER))
    assert path.startswith(f"{ttmemd.state}/flight/{OWNER}/")
    assert read_as(OWNER, path)
    assert not read_as(OTHER, path)
    # The owner has it to read only: it counts as the daemon's.
    write = subprocess.run([*become(OWNER), "sh", "-c", f"echo x >> {path}"], capture_output=True, check=False)
    assert write.returncode != 0
    remove = subprocess.run([*become(OWNER), "rm", "-f", path], capture_output=True, check=False)
    assert remove.returncode != 0 and os.path.exists(path)
    result = subprocess.run(
        [*become(OWNER), str(ttmemd.build / "src" / "cli" / "ttmem"), "buffers", "--from", path, "--json"],
        env=ttmemd.env, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert [b["name"] for b in json.loads(result.stdout)["buffers"]] == ["secret"], result.stderr


def test_what_else_is_in_the_state_folder_stays_private(ttmemd):
    """Others may go through it to their recordings, and that is all."""
    ttmemd.start("--http", "127.0.0.1:0")
    ttmemd.address()
    recording_of(ttmemd, leave_something(ttmemd, OWNER))
    for name in ("", "flight", f"flight/{OWNER}"):
        listing = subprocess.run([*become(OTHER), "ls", str(ttmemd.state / name)], capture_output=True, check=False)
        assert listing.returncode != 0
    files = [path for path in ttmemd.state.rglob("*") if path.is_file()]
    assert len(files) >= 3
    for path in files:
        assert not read_as(OTHER, path), path


def test_another_users_failures_push_out_no_recording(ttmemd):
    """A file per process, so many files of a user, and each user loses only its own."""
    ttmemd.start()
    path = recording_of(ttmemd, leave_something(ttmemd, OWNER))
    for _ in range(30):
        leave_something(ttmemd, OTHER)
    noisy = ttmemd.player("alloc 0 DRAM 0x1000 64 a", before=become(OTHER))
    for i in range(50):
        noisy.play(f"failed 0 DRAM {4096 + i} 10")
    wait_for(lambda: ttmemd.json("status")["flight"]["refused"] > 0, "refused files")
    assert read_as(OWNER, path)
    assert len(list((ttmemd.state / "flight" / str(OTHER)).iterdir())) <= 16
    # And who comes after that still gets one.
    assert read_as(OWNER, recording_of(ttmemd, leave_something(ttmemd, OWNER)))
