# SPDX-License-Identifier: Apache-2.0
"""Programs that keep books for processes: what ttmemd makes of them, also when one of the two is started again."""

import re

import pytest
from linked import WANT_BOOKS, WANT_LINES, Keeper
from ttmemd import get
from world import wait_for


@pytest.fixture
def daemon(ttmemd):
    return ttmemd.start("--legacy-socket", "none", "--http", "127.0.0.1:0")


def books(daemon):
    return daemon.json("status")["books"]


def buffers(daemon):
    """As the daemon knows them: the command would also find the books in /proc."""
    return get(daemon, "/api/v1/buffers")["buffers"]


def leaks(daemon):
    return [(row["pid"], row["bytes"]) for row in get(daemon, "/api/v1/leaks")["processes"]]


def test_a_kept_book_is_read_like_any_other(daemon):
    keeper = Keeper(daemon, daemon.folder).link()
    player = keeper.learn("a", "alloc 0 DRAM 0x1000 64 weights")
    keeper("offer", "a")
    keeper("sync")
    (buffer,) = buffers(daemon)
    assert (buffer["pid"], buffer["name"], buffer["size"]) == (player.pid, "weights", 64)
    # Its end takes both.
    player.kill()
    keeper("sync")
    assert books(daemon) == 1
    keeper("closed", "a")
    keeper("sync")
    assert wait_for(lambda: leaks(daemon), "the report") == [(player.pid, 64)]
    assert books(daemon) == 0


def test_what_a_keeper_left_ends_with_its_processes(daemon):
    keeper = Keeper(daemon, daemon.folder).link()
    early = keeper.learn("a", "alloc 0 DRAM 0x1000 64 early")
    late = keeper.learn("b", "alloc 0 DRAM 0x2000 32 late")
    keeper("offer", "a")
    keeper("offer", "b")
    keeper("sync")
    early.kill()
    keeper("sync")
    keeper.kill()
    wait_for(lambda: leaks(daemon) == [(early.pid, 64)], "the first report")
    assert books(daemon) == 1
    late.kill()
    wait_for(lambda: sorted(leaks(daemon)) == sorted([(early.pid, 64), (late.pid, 32)]), "the second one")


def test_a_keeper_that_is_started_again_goes_on(daemon):
    """Nothing ends, and nothing is counted twice."""
    first = Keeper(daemon, daemon.folder).link()
    player = first.learn("a", "alloc 0 DRAM 0x1000 64 weights")
    first("offer", "a")
    first("sync")
    first("continues", "a")
    first("sync")
    assert books(daemon) == 1 and len(buffers(daemon)) == 1
    player.kill()
    first.kill()
    wait_for(lambda: leaks(daemon) == [(player.pid, 64)], "one report")
    assert daemon.json("status")["ended"] == 1


def test_a_daemon_that_is_started_again_gets_its_books_back(daemon):
    keeper = Keeper(daemon, daemon.folder).link()
    lives = keeper.learn("a", "alloc 0 DRAM 0x1000 64 lives")
    ends = keeper.learn("b", "alloc 0 DRAM 0x2000 32 ends")
    for name in "ab":
        keeper("offer", name)
    keeper("sync")
    daemon.kill()
    ends.kill()
    daemon.start("--legacy-socket", "none", "--http", "127.0.0.1:0")
    # Of the dead one, its keeper has something left; it is back in time.
    keeper.link()
    for name in "ab":
        keeper("offer", name, again=True)
    keeper("sync")
    assert books(daemon) == 2
    keeper("closed", "b")
    keeper("sync")
    wait_for(lambda: leaks(daemon) == [(ends.pid, 32)], "the report of one")
    lives.kill()
    keeper("closed", "a")
    wait_for(lambda: len(leaks(daemon)) == 2, "the report of the other")


def test_a_daemon_waits_a_while_for_a_keeper_and_reports_without(daemon):
    keeper = Keeper(daemon, daemon.folder).link()
    player = keeper.learn("a", "alloc 0 DRAM 0x1000 64 left")
    keeper("offer", "a")
    keeper("sync")
    daemon.kill()
    keeper.kill()
    player.kill()
    daemon.start("--legacy-socket", "none", "--http", "127.0.0.1:0")
    wait_for(lambda: leaks(daemon) == [(player.pid, 64)], "the report")


def test_a_program_is_told_of_books(daemon):
    before = daemon.player("alloc 0 DRAM 0x1000 64 before")
    wait_for(lambda: books(daemon) == 1, "its book")
    reader = Keeper(daemon, daemon.folder).link(WANT_BOOKS)
    first, synced = reader("sync")
    assert first[:4] == ["book", before.pid, 0, 2] and synced == ["synced", 1]
    after = daemon.player("alloc 0 DRAM 0x1000 64 after")
    told = reader("receive")
    assert told[:2] == ["book", after.pid]
    after.kill()
    assert reader("receive") == ["ended", told[4]]


def test_what_a_keeper_has_left_is_told_to_the_next(daemon):
    keeper = Keeper(daemon, daemon.folder).link()
    player = keeper.learn("a", "alloc 0 DRAM 0x1000 64 weights")
    keeper("offer", "a")
    keeper("sync")
    keeper("hang_up")
    told, _ = wait_for(lambda: keeper.link(WANT_BOOKS)("sync"), "the book")
    assert told[:4] == ["book", player.pid, 1, 2]


def test_whoever_prints_the_old_lines_prints_reports(daemon):
    printer = Keeper(daemon, daemon.folder).link(WANT_LINES)
    printer("sync")
    player = daemon.player("alloc 0 DRAM 0x1000 64 weights")
    wait_for(lambda: books(daemon) == 1, "its book")
    player.kill()
    told = ""
    while "weights" not in told:
        kind, text = printer("receive")
        assert kind == "lines"
        told += text
    assert told.count(f"PID {player.pid} is dead") == 1
    assert told.count(f"Process {player.pid} exited but left 1 buffers allocated") == 1
    assert told.index("is dead") < told.index("exited but")
    # Not in the log as well; without a printer it is there.
    printer.kill()
    other = daemon.player("alloc 0 DRAM 0x1000 64 other")
    wait_for(lambda: books(daemon) == 1, "its book")
    other.kill()
    wait_for(lambda: f"Process {other.pid} exited" in daemon.text(), "the line")
    assert f"Process {player.pid} exited" not in daemon.text() and "is dead" not in daemon.text()


def metric(daemon, name):
    return int(re.search(rf"^{name} (\d+)$", daemon.fetch("/metrics")[1], re.M)[1])


def test_what_the_program_of_old_clients_says_of_itself_is_shown(daemon):
    assert "old_clients" not in {door["name"] for door in daemon.json("status")["doors"]}
    keeper = Keeper(daemon, daemon.folder).link()
    keeper("state", path="/run/old", connections=3, messages=40, refused=2, refused_room=1, memory=512, connections_slow=5)
    keeper("sync")
    (door,) = [door for door in daemon.json("status")["doors"] if door["name"] == "old_clients"]
    assert door["open"] and door["where"] == "/run/old"
    assert metric(daemon, "ttmem_legacy_connections") == 3 and metric(daemon, "ttmem_legacy_memory_bytes") == 512
    assert metric(daemon, "ttmem_legacy_connections_slow_total") == 5
    assert metric(daemon, "ttmem_legacy_room_refused_total") == 1
    keeper("state", path="/run/old", status=-98, holder=1)
    keeper("sync")
    (door,) = [door for door in daemon.json("status")["doors"] if door["name"] == "old_clients"]
    assert not door["open"] and door["problem"] == "in use by process 1 of user 0"
    keeper.kill()
    wait_for(lambda: "old_clients" not in {door["name"] for door in daemon.json("status")["doors"]}, "its end")
    assert metric(daemon, "ttmem_legacy_connections") == 0
