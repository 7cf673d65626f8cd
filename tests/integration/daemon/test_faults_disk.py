# SPDX-License-Identifier: Apache-2.0
"""History may fail without affecting live data: a full disk, and a corrupted database."""

import contextlib
import os
import random
import re
import subprocess

import pytest

from world import used, wait_for

FILE = "history.db"


@pytest.fixture
def disk(ttmemd):
    """A disk of 4 MiB under the daemon's state."""
    ttmemd.state.mkdir()
    options = ["-t", "tmpfs", "-o", "size=4m,mode=700", "none", ttmemd.state]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield ttmemd.state
    ttmemd.close()
    subprocess.run(["umount", "--lazy", ttmemd.state], check=True)


@pytest.fixture
def rng():
    return random.Random(3)


def fill(path):
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def reasons(daemon):
    return re.findall(r"ttmemd: history in .*", daemon.text())


def leave(daemon, size):
    """A process that dies with one buffer; returns its pid once that was told."""
    player = daemon.player(f"alloc 0 DRAM 0x1000 {size} left{size}")
    wait_for(lambda: player.pid in alive(daemon), "the process")
    player.kill()
    line = f"Process {player.pid} exited but left 1 buffers allocated:\n"
    wait_for(lambda: line in daemon.text(), "the line in the log")
    return player.pid


def alive(daemon):
    """Whom the daemon knows; the command itself looks into an empty folder."""
    blind = daemon.folder / "blind"
    blind.mkdir(exist_ok=True)
    document = daemon.json("ps", env={"TTMEM_PROC_ROOT": str(blind)})
    return {p["pid"] for p in document["processes"] if p["alive"]}


def leaked(daemon):
    """{pid: bytes} of all reports; None if there are none to be had at present."""
    result = daemon.run("leaks", "--json")
    if result.returncode:
        return None
    return {p["pid"]: p["bytes"] for p in daemon.json("leaks")["processes"]}


def test_reports_are_written_once_a_full_disk_has_room(ttmemd, disk):
    ttmemd.start()
    before = leave(ttmemd, 11)
    wait_for(lambda: before in (leaked(ttmemd) or {}), "the first report")
    lives = ttmemd.player("alloc 0 DRAM 0x1000 500")
    fill(disk / "filler")
    wait_for(lambda: reasons(ttmemd), "the reason")
    # Everything but history continues.
    during = [leave(ttmemd, 100 + i) for i in range(3)]
    lives.play("alloc 1 L1 0x2000 7")
    assert used(ttmemd.json("smi"), lives.pid) == {(0, "DRAM"): 500, (1, "L1"): 7}
    assert len(reasons(ttmemd)) == 1, reasons(ttmemd)
    assert not ttmemd.json("status")["past"]["running"]
    # Nothing of it was lost: there is room for it in a queue.
    (disk / "filler").unlink()
    wait_for(lambda: ttmemd.json("status")["past"]["running"], "the past to go on")
    after = leave(ttmemd, 12)
    want = {before: 11, after: 12, **{pid: 100 + i for i, pid in enumerate(during)}}
    wait_for(lambda: leaked(ttmemd) == want, "all reports")
    assert ttmemd.json("status")["past"]["dropped"] == 0
    assert len(reasons(ttmemd)) == 1, reasons(ttmemd)


def test_daemon_starts_on_a_full_disk(ttmemd, disk):
    fill(disk / "filler")
    ttmemd.start()
    wait_for(lambda: reasons(ttmemd), "the reason")
    pid = leave(ttmemd, 42)
    assert len(reasons(ttmemd)) == 1, reasons(ttmemd)
    # Killed, it leaves what it could not write to the next one.
    ttmemd.kill()
    (disk / "filler").unlink()
    ttmemd.start()
    wait_for(lambda: leaked(ttmemd) == {pid: 42}, "the report")
    assert ttmemd.json("status")["unobserved_exits"] == 0


def test_a_full_disk_is_called_one(ttmemd, disk):
    """A reader of the database makes a file beside it."""
    ttmemd.start()
    pid = leave(ttmemd, 42)
    wait_for(lambda: leaked(ttmemd) == {pid: 42}, "the report")
    assert ttmemd.stop() == 0
    fill(disk / "filler")
    ttmemd.start()
    result = ttmemd.run("leaks")
    assert result.returncode == 1 and "the disk that has it is full" in result.stderr, result.stderr
    (disk / "filler").unlink()
    wait_for(lambda: leaked(ttmemd) == {pid: 42}, "the report, once there is room")


def overwrite(path, rng):
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        for at in range(0, size, 4096):
            file.seek(at)
            file.write(rng.randbytes(1000))


def test_a_damaged_database_is_replaced_at_start(ttmemd, rng):
    ttmemd.start()
    leave(ttmemd, 1)
    assert ttmemd.stop() == 0
    overwrite(ttmemd.state / FILE, rng)
    ttmemd.start()
    pid = leave(ttmemd, 2)
    wait_for(lambda: leaked(ttmemd) == {pid: 2}, "the report in a new file")
    (reason,) = wait_for(lambda: reasons(ttmemd), "the reason")
    name = re.search(r"set aside as (\S+)", reason).group(1)
    assert (ttmemd.state / name).exists()


def test_a_database_damaged_in_use_is_replaced(ttmemd, rng):
    ttmemd.start()
    first = leave(ttmemd, 1)
    wait_for(lambda: leaked(ttmemd) == {first: 1}, "the first report")
    for path in ttmemd.state.iterdir():
        if path.name.startswith(FILE):
            overwrite(path, rng)
    last = leave(ttmemd, 2)
    lives = ttmemd.player("alloc 0 DRAM 0x1000 500")
    wait_for(lambda: last in (leaked(ttmemd) or {}), "a report after that")
    wait_for(lambda: lives.pid in alive(ttmemd), "the process")
    assert used(ttmemd.json("smi"), lives.pid) == {(0, "DRAM"): 500}
    assert len(reasons(ttmemd)) <= 1, reasons(ttmemd)
    assert ttmemd.stop() == 0
    ttmemd.start()
    wait_for(lambda: last in (leaked(ttmemd) or {}), "the report after a restart")
