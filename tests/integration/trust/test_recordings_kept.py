# SPDX-License-Identifier: Apache-2.0
"""Recordings that ttmemd keeps: whose they are, who may read them, and what one user can take from another."""

import errno
import fcntl
import json
import os
import socket as socketlib
import struct
import subprocess
from pathlib import Path

import pytest
from common import become
from conftest import LIMIT
from world import wait_for

OWNER, OTHER = 64901, 64902
CONTAINER = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

pytestmark = pytest.mark.other_user


def read_as(user, path):
    """Whether a user can read a file."""
    result = subprocess.run([*become(user), "cat", str(path)], capture_output=True, timeout=LIMIT, check=False)
    return result.returncode == 0 and len(result.stdout) > 0


def shown_to(user, ttmemd, path, *before):
    """Names of the buffers in a recording, as a user's command shows them; None if it does not."""
    result = subprocess.run(
        [*before, *become(user), str(ttmemd.build / "src" / "cli" / "ttmem"), "buffers", "--from", path, "--json"],
        env=ttmemd.env, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    return [b["name"] for b in json.loads(result.stdout)["buffers"]] if result.returncode == 0 else None


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
    assert shown_to(OWNER, ttmemd, path) == shown_to(0, ttmemd, path) == ["secret"]
    assert shown_to(OTHER, ttmemd, path) is None
    # By its mode it is the daemon's: what is given to the owner is a descriptor for reading.
    assert not read_as(OWNER, path) and not read_as(OTHER, path)
    remove = subprocess.run([*become(OWNER), "rm", "-f", path], capture_output=True, check=False)
    assert remove.returncode != 0 and os.path.exists(path)


def ask_for(socket, name):
    """The answer to a request of the native protocol: its status and descriptors."""
    with socketlib.socket(socketlib.AF_UNIX, socketlib.SOCK_SEQPACKET) as client:
        client.settimeout(LIMIT)
        client.connect(str(socket))
        client.send(struct.pack("<7I132s32x", 0x51525454, 1, 192, 9, 0, 0, 0, name))
        packet, fds, _, _ = socketlib.recv_fds(client, 65536, 4)
    return struct.unpack_from("<i", packet, 16)[0], fds


def test_a_recording_that_is_given_cannot_be_written(ttmemd):
    ttmemd.start()
    path = recording_of(ttmemd, leave_something(ttmemd, OWNER))
    status, (fd,) = ask_for(ttmemd.socket, os.path.basename(path).encode())
    assert status == 0 and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    assert os.fstat(fd).st_ino == os.stat(path).st_ino
    os.close(fd)


@pytest.mark.parametrize("name", [b"", b"new", b".", b"..", b"../../http-token", b"../64901/x", b"x" * 132])
def test_other_files_are_not_given(ttmemd, name):
    """Not even to root: this is a door to recordings."""
    ttmemd.start("--http", "127.0.0.1:0")
    ttmemd.address()
    recording_of(ttmemd, leave_something(ttmemd, OWNER))
    (ttmemd.state / "flight" / str(OWNER) / "new").touch()
    assert ask_for(ttmemd.socket, name) == (-errno.ENOENT, [])


def test_a_link_in_place_of_a_recording_is_not_followed(ttmemd):
    ttmemd.start()
    path = Path(recording_of(ttmemd, leave_something(ttmemd, OWNER)))
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert ask_for(ttmemd.socket, path.name.encode()) == (-errno.ENOENT, [])


@pytest.mark.parametrize("user", [OWNER, 0])
def test_the_same_number_in_a_container_is_another_user(ttmemd, user):
    """In both directions, for a user and for root there."""
    ttmemd.start()
    outside = recording_of(ttmemd, leave_something(ttmemd, user))
    inside = ttmemd.player("alloc 0 DRAM 0x1000 64 inside", before=(*CONTAINER, *become(user)))
    inside.kill()
    within = wait_for(lambda: [str(p) for p in (ttmemd.state / "flight").glob("*@*/*.ttrec")], "the other file")[0]
    assert shown_to(user, ttmemd, within) == (["inside"] if user == 0 else None)
    # A later container is another one; root there has the rights of root on files, so those are covered.
    hide = ("sh", "-c", f'mount -t tmpfs none {ttmemd.state} && exec "$@"', "sh")
    for path in (outside, within):
        assert shown_to(user, ttmemd, path, *CONTAINER, *hide) is None


def test_files_of_an_earlier_version_are_for_those_who_see_all(ttmemd):
    """They were given by an access control list, and it is not known in which container their process was."""
    ttmemd.start()
    path = Path(recording_of(ttmemd, leave_something(ttmemd, OWNER)))
    path.chmod(0o640)
    assert shown_to(OWNER, ttmemd, str(path)) is None
    assert ask_for(ttmemd.socket, path.name.encode())[0] == 0


def test_a_state_folder_of_an_earlier_version_is_closed(ttmemd):
    folder = ttmemd.state / "flight" / str(OWNER)
    folder.mkdir(parents=True)
    file = folder / "1-2-ended.ttrec"
    file.write_text("old")
    for path, mode in ((ttmemd.state, 0o711), (folder.parent, 0o711), (folder, 0o711), (file, 0o644)):
        path.chmod(mode)
    assert read_as(OWNER, file)
    ttmemd.start()
    assert not read_as(OWNER, file)


def test_what_else_is_in_the_state_folder_stays_private(ttmemd):
    """Nobody else may even go through it."""
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
    assert shown_to(OWNER, ttmemd, path)
    assert len(list((ttmemd.state / "flight" / str(OTHER)).iterdir())) <= 16
    # And who comes after that still gets one.
    assert shown_to(OWNER, ttmemd, recording_of(ttmemd, leave_something(ttmemd, OWNER)))
