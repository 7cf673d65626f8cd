# SPDX-License-Identifier: Apache-2.0
"""The memory of a book counts for the cgroup of the process that made it, also when that process has ended:
whoever holds such a book lets it go as soon as its report is on disk."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import LIMIT
from ttmemd import get
from world import descriptors, wait_for

MIB = 1 << 20
LIMITED = 64 * MIB
WAITS = max(8 * MIB, LIMITED // 16)  # what may wait in that group
RUNS = 60
BUFFERS, SIZE = 60000, 64  # of a book of 5 MiB

# Changes its group, and becomes the command.
ENTER = ("/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"')

# No book: it needs most of the group's memory.
UNTRACKED = "bytearray(36 << 20)"


class Group:
    def __init__(self, folder):
        self.folder = folder
        self.enter = (*ENTER, folder)

    def shmem(self):
        return int(re.search(r"^shmem (\d+)$", (self.folder / "memory.stat").read_text(), re.M)[1])


@pytest.fixture
def group():
    """A memory cgroup with a limit, of whichever version this machine has."""
    why = []
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = None
        try:
            # Not after our pid: tests in other pid namespaces have the same.
            folder = Path(tempfile.mkdtemp(prefix="ttmem-dead-", dir=root))
            (folder / limit).write_text(str(LIMITED))
        except OSError as error:
            why.append(str(error))
            if folder:
                folder.rmdir()
            continue
        yield Group(folder)
        wait_for(lambda: not (folder / "cgroup.procs").read_text(), "its processes have ended")
        folder.rmdir()
        return
    pytest.skip(f"no memory cgroup can be made here: {'; '.join(why)}")


def metric(daemon, name):
    return int(re.search(rf"^{name} (\d+)$", daemon.fetch("/metrics")[1], re.M)[1])


def ended(daemon):
    """All reports, without their lists."""
    return get(daemon, "/api/v1/leaks?buffers=0&limit=1000")["processes"]


@pytest.mark.needs_root
@pytest.mark.parametrize("flight", [(), ("--flight", "off")], ids=["flight", "no_flight"])
def test_books_of_the_dead_kill_nobody_in_their_group(ttmemd, group, flight):
    ttmemd.start("--http", "127.0.0.1:0", *flight)
    pids = []
    for _ in range(RUNS):
        player = ttmemd.player(f"many 0 DRAM 0x1000 {SIZE} {BUFFERS}", before=group.enter)
        pids.append(player.pid)
        player.kill()
        assert group.shmem() <= WAITS + 6 * MIB
        other = subprocess.run([*map(str, group.enter), "/usr/bin/python3", "-c", UNTRACKED], timeout=LIMIT)
        assert other.returncode == 0, f"after {len(pids)} runs"
    wait_for(lambda: group.shmem() == 0, "the books are gone", limit=5)
    wait_for(lambda: len(ended(ttmemd)) == RUNS, "all reports")
    rows = ended(ttmemd)
    assert {row["pid"] for row in rows} == set(pids)
    assert {(row["bytes"], row["buffer_count"]) for row in rows} == {(BUFFERS * SIZE, BUFFERS)}
    # Those that had to go at once have no lists, and are counted with what they left.
    unread = sum(row["listed"] == 0 for row in rows)
    assert unread < RUNS
    wait_for(lambda: metric(ttmemd, "ttmem_exits_unread_total") == unread, "their count")
    assert metric(ttmemd, "ttmem_exits_unread_left_total") == unread * BUFFERS * SIZE
    wait_for(lambda: metric(ttmemd, "ttmem_exits_waiting") == metric(ttmemd, "ttmem_exits_waiting_bytes") == 0, "the gauges")
    assert metric(ttmemd, "ttmem_processes_leaked_total") == RUNS


@pytest.mark.needs_root
def test_who_ends_while_nothing_can_be_judged_is_reported_with_its_totals(ttmemd, group):
    ttmemd.start("--http", "127.0.0.1:0")
    players = [ttmemd.player(f"many 0 DRAM 0x1000 {SIZE} {BUFFERS // 2}", before=group.enter) for _ in range(8)]
    wait_for(lambda: len(ttmemd.json("smi")["processes"]) == 8, "all of them")
    ttmemd.process.send_signal(signal.SIGSTOP)  # so that it learns of all ends at once
    for player in players:
        player.kill()
    ttmemd.process.send_signal(signal.SIGCONT)
    wait_for(lambda: group.shmem() == 0, "the books are gone", limit=5)
    wait_for(lambda: len(ended(ttmemd)) == 8, "all reports")
    rows = ended(ttmemd)
    assert {row["bytes"] for row in rows} == {BUFFERS // 2 * SIZE}
    unread = [row for row in rows if row["listed"] == 0]
    assert 0 < len(unread) < 8
    wait_for(lambda: metric(ttmemd, "ttmem_exits_unread_total") == len(unread), "their count")
    assert metric(ttmemd, "ttmem_exits_unread_left_total") == sum(row["bytes"] for row in unread)
    assert ttmemd.json("status")["unobserved_exits"] == 0


# Where the daemon is killed: as soon as it gets there, or when it leaves it.
POINTS = {
    "judged": ("daemon_keep_judged", False),
    "copied": ("daemon_keep_copied", False),
    "committed": ("keep_flush_done", False),
    "let_go": ("daemon_keep_let_go", True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_that_is_killed_on_the_way_loses_nothing_and_counts_nothing_twice(ttmemd, point):
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    function, leaves = POINTS[point]
    steps = ["set startup-with-shell off", f"break {function}", "run", *(["finish"] if leaves else []), "kill"]
    ttmemd.start(before=("gdb", "-batch", "-nx", *(word for step in steps for word in ("-ex", step)), "--args"))
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 left")
    wait_for(lambda: len(ttmemd.json("smi")["processes"]) == 1, "the player")
    player.kill()
    assert ttmemd.process.wait(timeout=LIMIT) is not None
    ttmemd.process = None
    for _ in range(2):
        ttmemd.start("--http", "127.0.0.1:0")
        wait_for(lambda: ended(ttmemd), "the report")
        (row,) = ended(ttmemd)
        assert (row["pid"], row["bytes"], row["buffer_count"]) == (player.pid, 64, 1)
        assert ttmemd.json("status")["unobserved_exits"] == 0
        ttmemd.stop()


@pytest.mark.legacy
def test_the_log_of_events_lets_go_of_the_books_that_it_has_printed(ttmemd):
    ttmemd.start("--log-events")
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 left")
    wait_for(lambda: len(ttmemd.json("smi")["processes"]) == 1, "the player")
    assert "ttmem-book" in descriptors(ttmemd.process.pid)
    player.kill()
    ttmemd.wait_for_leak(player.pid)
    wait_for(lambda: "ttmem-book" not in descriptors(ttmemd.process.pid), "the book to be closed")


def test_systemd_is_told_to_let_go_of_a_book_that_was_judged(ttmemd):
    """Here systemd is a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.setblocking(False)
        systemd.bind(str(ttmemd.folder / "systemd"))
        ttmemd.start(env={"NOTIFY_SOCKET": str(ttmemd.folder / "systemd"), "FDSTORE": "100"})

        told = ""

        def name_of(what):
            """Of the book that it is told to store or to let go; other files are stored, too."""
            nonlocal told
            with contextlib.suppress(BlockingIOError):
                while True:
                    text, fds, _, _ = socket.recv_fds(systemd, 4096, 4)
                    told += text.decode() + "\n"
                    for fd in fds:
                        os.close(fd)
            return re.findall(rf"^{what}=1\nFDNAME=(b.*)", told, re.M)

        player = ttmemd.player("alloc 0 DRAM 0x1000 64 left")
        names = wait_for(lambda: name_of("FDSTORE"), "the book to be stored")
        player.kill()
        wait_for(lambda: name_of("FDSTOREREMOVE") == names, "the book to be let go")


def test_run_lets_go_of_the_books_of_children_that_it_has_judged(ttmemd):
    script = 'for i in 1 2 3; do echo "alloc 0 DRAM 0x1000 64 left" | "$0"; done; echo ended; read line'
    words = [ttmemd.build / "src" / "cli" / "ttmem", "run", "/bin/sh", "-c", script, ttmemd.build / "tests" / "programs" / "player"]  # fmt: skip
    with subprocess.Popen(
        [str(word) for word in words], env={**ttmemd.env, "TTMEM_SOCKET": "none"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        while run.stdout.readline() != "ended\n":
            pass
        wait_for(lambda: "ttmem-book" not in descriptors(run.pid), "the books to be closed")
        _, errors = run.communicate("go on\n", timeout=LIMIT)
    assert errors.count("left") >= 3, errors
