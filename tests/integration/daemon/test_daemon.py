# SPDX-License-Identifier: Apache-2.0
"""ttmemd knows every process: how it learns of them and of their exits, and what it then reports.

The commands here have an empty /proc, so that all they know comes from the daemon.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from common import AS_NOBODY
from conftest import LIMIT
from world import end_children, used, wait_for


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def seen(daemon, *args):
    """What the daemon alone knows."""
    return daemon.json(*args, env=daemon.blind)


def pids(daemon):
    return {p["pid"] for p in seen(daemon, "ps")["processes"] if p["alive"]}


def buffers_of(daemon, pid):
    return sorted(
        (b["device"], b["type"], b["address"], b["size"], b["name"])
        for b in seen(daemon, "buffers", "--pid", pid)["buffers"]
    )


def wait_until_seen(daemon, pid):
    wait_for(lambda: pid in pids(daemon), f"pid {pid}")


def test_a_new_book_reaches_the_daemon_at_once(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 100 weights", "alloc 3 L1 0x2000 50")
    wait_until_seen(daemon, player.pid)
    assert used(seen(daemon, "smi"), player.pid) == {(0, "DRAM"): 100, (3, "L1"): 50}
    assert buffers_of(daemon, player.pid) == [
        (0, "DRAM", "0x1000", 100, "weights"),
        (3, "L1", "0x2000", 50, None),
    ]
    player.play("free 0 DRAM 0x1000")
    assert used(seen(daemon, "smi"), player.pid) == {(3, "L1"): 50}


def test_a_book_that_was_not_offered_is_found_by_the_scan(daemon):
    before = daemon.player("alloc 0 DRAM 0x1000 7", TTMEM_SOCKET="none")
    daemon.start("--scan-interval", "1")
    assert before.pid in pids(daemon)
    later = daemon.player("alloc 0 DRAM 0x1000 8", TTMEM_SOCKET="none")
    wait_until_seen(daemon, later.pid)
    document = seen(daemon, "smi")
    assert used(document, before.pid) == {(0, "DRAM"): 7}
    assert used(document, later.pid) == {(0, "DRAM"): 8}


def test_a_killed_process_is_reported_as_a_leak(daemon):
    daemon.start()
    player = daemon.player(
        "phase setup", "alloc 0 DRAM 0x1000 100 weights", "alloc 1 L1 0x2a00 52"
    )
    wait_until_seen(daemon, player.pid)
    player.kill()
    leak = daemon.wait_for_leak(player.pid)
    assert leak["how"] == "died" and leak["bytes"] == 152 and not leak["exec"]
    status = daemon.json("status")
    assert (status["books"], status["ended"], status["leaked"]) == (0, 1, 1)
    rows = sorted((b["device"], b["type"], b["address"], b["size"]) for b in leak["buffers"])
    assert rows == [(0, "DRAM", "0x1000", 100), (1, "L1", "0x2a00", 52)]
    (named,) = [b for b in leak["buffers"] if b["name"]]
    assert named["name"] == "weights" and named["phase"] == "setup"
    log = wait_for(
        lambda: re.search(
            rf"Process {player.pid} exited but left 2 buffers allocated:\n"
            r" +\[Device 0\] Buffer 0x1000: 100 bytes DRAM \(age: \d+s\).*\n"
            r" +\[Device 1\] Buffer 0x2a00: 52 bytes L1 \(age: \d+s\)\n",
            daemon.text(),
        ),
        "the log line",
    )
    assert log
    assert player.pid not in pids(daemon)
    assert seen(daemon, "smi")["totals"] == {"bytes": 0, "buffers": 0}


def test_a_clean_end_is_no_incident(daemon):
    daemon.start()
    # A buffer inside another one holds no memory of its own.
    clean = daemon.player("alloc 0 DRAM 0x1000 100", "free 0 DRAM 0x1000", "alias 0 0x3000 20")
    closed = daemon.player("alloc 0 DRAM 0x1000 100", "alias 0 0x3000 20", "goodbye")
    wait_until_seen(daemon, clean.pid)
    wait_until_seen(daemon, closed.pid)
    clean.end()
    closed.end()
    leak = daemon.wait_for_leak(closed.pid)
    assert (leak["how"], leak["buffer_count"], leak["bytes"]) == ("closed", 1, 100)
    wait_for(lambda: clean.pid not in pids(daemon), "the end")
    assert daemon.leaks(clean.pid) == []
    wait_for(lambda: f"Process {closed.pid} exited but left 1 buffers" in daemon.text(), "the line in the log")
    assert f"Process {clean.pid} " not in daemon.text()


def test_a_restarted_daemon_knows_the_same_processes(daemon):
    daemon.start()
    players = [
        daemon.player(f"alloc 0 DRAM 0x1000 {100 + i}", f"alloc {i} L1 0x2000 {i + 1} name{i}")
        for i in range(5)
    ]
    client = daemon.old_client()
    client.alloc(2, 0, 0x5000, 999)
    assert client.query(2)[0] == 999
    for player in players:
        wait_until_seen(daemon, player.pid)
    before = seen(daemon, "smi"), [buffers_of(daemon, p.pid) for p in players]
    mine = buffers_of(daemon, os.getpid())
    assert mine == [(2, "DRAM", "0x5000", 999, None)]
    daemon.kill()
    daemon.start()
    after = seen(daemon, "smi"), [buffers_of(daemon, p.pid) for p in players]
    assert after[0]["totals"] == before[0]["totals"]
    assert after[1] == before[1]
    assert buffers_of(daemon, os.getpid()) == mine
    # An old client that reconnects keeps its buffers.
    client.close()
    client = daemon.old_client()
    assert client.query(2)[0] == 999
    client.free(2, 0x5000)
    assert client.query(2)[0] == 0
    client.close()


def test_deaths_while_the_daemon_is_down_are_reported(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 4242 lost")
    quiet = daemon.player("alloc 0 DRAM 0x1000 1", "free 0 DRAM 0x1000")
    wait_until_seen(daemon, player.pid)
    wait_until_seen(daemon, quiet.pid)
    daemon.kill()
    player.kill()
    quiet.kill()
    daemon.start()
    leak = daemon.wait_for_leak(player.pid)
    assert leak["bytes"] == 4242 and leak["buffers"][0]["name"] == "lost"
    assert daemon.leaks(quiet.pid) == []
    line = f"Process {player.pid} exited but left 1 buffers allocated:"
    wait_for(lambda: line in daemon.text(), "the line")
    assert daemon.json("status")["unobserved_exits"] == 0


def test_unobserved_exits_are_counted(daemon):
    daemon.start("--keeper", "no")
    player = daemon.player("alloc 0 DRAM 0x1000 4242")
    lives = daemon.player("alloc 0 DRAM 0x1000 1")
    wait_until_seen(daemon, player.pid)
    wait_until_seen(daemon, lives.pid)
    wait_for(lambda: str(lives.pid).encode() in roll(daemon), "the roll")
    daemon.kill()
    player.kill()
    daemon.start("--keeper", "no")
    assert daemon.leaks(player.pid) == []
    assert lives.pid in pids(daemon)
    assert daemon.json("status")["unobserved_exits"] == 1


def roll(daemon):
    with contextlib.suppress(FileNotFoundError):
        return (daemon.state / "tracked").read_bytes()
    return b""


def test_a_closed_connection_is_not_an_exit(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 100")
    wait_until_seen(daemon, player.pid)
    player.play("closefds", "alloc 0 DRAM 0x2000 11")
    time.sleep(0.3)  # time to get it wrong
    assert used(seen(daemon, "smi"), player.pid) == {(0, "DRAM"): 111}
    assert daemon.leaks(player.pid) == []
    player.kill()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 111


@pytest.mark.parametrize("handed_over", [True, False])
def test_exec_is_reported_as_the_end_of_the_book(daemon, handed_over):
    daemon.start("--scan-interval", "1")
    settings = {} if handed_over else {"TTMEM_SOCKET": "none"}
    player = daemon.player("alloc 0 DRAM 0x1000 77", **settings)
    wait_until_seen(daemon, player.pid)
    player.process.stdin.write("exec\n")
    player.process.stdin.flush()
    leak = daemon.wait_for_leak(player.pid)
    assert (leak["bytes"], leak["how"], leak["exec"]) == (77, "died", True)
    assert "became another program, left 1 buffer" in daemon.run("leaks", "--pid", player.pid).stdout
    assert player.process.poll() is None
    assert player.pid not in pids(daemon)


def holds_book(files):
    return any("ttmem-book" in file for file in files)


def test_a_killed_keeper_is_replaced_with_all_books(daemon):
    """It is said, once; another one takes over, with all the books."""
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 88")
    wait_until_seen(daemon, player.pid)
    keeper = daemon.keeper(holds_book)
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: "ttmemd: the keeper of books is gone" in daemon.text(), "the news")
    daemon.keeper(holds_book, besides=keeper)
    daemon.kill()
    player.kill()
    daemon.start()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 88
    assert daemon.text().count("the keeper of books is gone") == 1


def test_a_keeper_that_could_not_be_started_comes_later(daemon):
    way = daemon.folder / f"{daemon.socket.name}.keeper"
    way.write_text("in the way")
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 88")
    client = daemon.old_client()
    client.alloc(1, 0, 0x1000, 7)
    assert client.query(1)[0] == 7
    wait_for(lambda: "ttmemd: there is no keeper of books" in daemon.text(), "the news")
    assert way.read_text() == "in the way"
    way.unlink()
    daemon.keeper(holds_book)
    daemon.kill()
    player.kill()
    daemon.start()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 88
    assert client.query(1)[0] == 7
    assert daemon.text().count("there is no keeper of books") == 1
    client.close()


def test_children_and_grandchildren_have_their_own_books(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 1")
    child = player.play("fork")
    player.play("alloc 0 DRAM 0x1000 2")
    grandchild = player.play("fork")
    player.play("alloc 0 DRAM 0x1000 3")
    try:
        for pid in (player.pid, child, grandchild):
            wait_until_seen(daemon, pid)
        document = seen(daemon, "smi")
        for pid, size in ((player.pid, 1), (child, 2), (grandchild, 3)):
            assert used(document, pid) == {(0, "DRAM"): size}
    finally:
        end_children(child, grandchild)
    assert daemon.wait_for_leak(child)["bytes"] == 2


@pytest.mark.other_user
def test_setuid_changes_nothing_about_who_may_see(daemon):
    daemon.start()
    player = daemon.player("alloc 0 DRAM 0x1000 123 secret", "setuid 65534")
    wait_until_seen(daemon, player.pid)
    document = daemon.json("smi", before=AS_NOBODY, env=daemon.blind)
    (process,) = [p for p in document["processes"] if p["pid"] == player.pid]
    assert process["book_user_id"] == 0
    assert used(document, player.pid) == {(0, "DRAM"): 123}
    assert daemon.json("buffers", before=AS_NOBODY, env=daemon.blind)["buffers"] == []
    assert len(buffers_of(daemon, player.pid)) == 1


def test_a_process_whose_main_thread_exited_is_alive(daemon):
    daemon.start("--scan-interval", "1")
    player = daemon.player("alloc 0 DRAM 0x1000 100", "leave", "alloc 0 DRAM 0x2000 1")
    wait_until_seen(daemon, player.pid)
    time.sleep(2.5)  # two scans of /proc
    assert used(seen(daemon, "smi"), player.pid) == {(0, "DRAM"): 101}
    player.play("free 0 DRAM 0x1000")
    player.end()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 1


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.needs_root
@pytest.mark.parametrize("mounted", [True, False])
def test_processes_of_a_pid_namespace_have_their_host_pids(daemon, mounted):
    daemon.start("--scan-interval", "1")
    proc = ("--mount-proc",) if mounted else ()
    player = daemon.player(
        "alloc 0 DRAM 0x1000 64",
        before=("unshare", "--pid", "--fork", "--kill-child", *proc),
        TTMEM_SOCKET=str(daemon.socket) if mounted else "none",
    )
    (pid,) = children(player.pid)
    wait_until_seen(daemon, pid)
    (process,) = [p for p in seen(daemon, "ps")["processes"] if p["pid"] == pid]
    assert process["ns_pid"] == 1
    assert used(seen(daemon, "smi"), pid) == {(0, "DRAM"): 64}
    os.kill(pid, signal.SIGKILL)
    leak = daemon.wait_for_leak(pid)
    assert leak["bytes"] == 64


def test_a_failed_allocation_reports_the_holders(daemon):
    daemon.start()
    big = daemon.player("alloc 0 DRAM 0x1000 9000 hog", "alloc 1 DRAM 0x1000 5 elsewhere")
    small = daemon.player("alloc 0 DRAM 0x1000 300 crumb")
    for player in (big, small):
        wait_until_seen(daemon, player.pid)
    unlucky = daemon.player("alloc 0 DRAM 0x5000 1", "failed 0 DRAM 8192 1024")
    big.play("free 0 DRAM 0x1000")  # too late: it was seen

    def failure():
        found = [
            i
            for i in daemon.json("incidents")["incidents"]
            if i["kind"] == "alloc_failed" and i["pid"] == unlucky.pid
        ]
        return found and found[0]

    incident = wait_for(failure, "the incident")
    assert incident["size"] == 8192
    holders = {h["pid"]: h["used"] for h in incident["holders"]}
    assert holders[small.pid] == 300
    assert set(holders) <= {big.pid, small.pid, unlucky.pid}


def test_a_second_daemon_says_who_has_the_socket(daemon):
    daemon.start()
    second = subprocess.run(
        list(map(str, daemon.command())), env=daemon.env, capture_output=True, text=True,
        timeout=LIMIT,
    )  # fmt: skip
    assert second.returncode == 1
    assert f"process {daemon.process.pid}" in second.stderr and str(daemon.socket) in second.stderr
    player = daemon.player("alloc 0 DRAM 0x1000 1")
    wait_until_seen(daemon, player.pid)
    assert daemon.stop() == 0
    assert not daemon.socket.exists() and not daemon.legacy.exists()


def test_sighup_reopens_the_log(daemon):
    log = daemon.folder / "own.log"
    daemon.start("--log", log)
    wait_for(lambda: "serving" in log.read_text(), "the first words")
    log.rename(daemon.folder / "old.log")
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(log.exists, "the new log")
    player = daemon.player("alloc 0 DRAM 0x1000 1")
    wait_until_seen(daemon, player.pid)
    player.kill()
    wait_for(lambda: f"Process {player.pid} exited" in log.read_text(), "a line in it")


def test_an_incident_runs_a_command(daemon):
    out = daemon.folder / "incidents"
    daemon.start("--on-incident", f"cat >> {out}; echo >> {out}")
    player = daemon.player("alloc 0 DRAM 0x1000 10", "free 0 DRAM 0x1000", "free 0 DRAM 0x1000")

    def told():
        with contextlib.suppress(FileNotFoundError, ValueError):
            return json.loads(out.read_text())
        return None

    incident = wait_for(told, "the command")
    assert (incident["kind"], incident["pid"]) == ("double_free", player.pid)


OLD_CLIENT_WITH_STACK = """
import os, socket, struct, sys, time
name, stack = b"attention_qkv", b"attention.py:123:create_qkv -> model.py:456:init"
message = struct.pack("<B3xiQB3xiQQ32x64s512s", 1, 0, 4096, 1, os.getpid(), 0x11e66820, 5, name, stack)
assert len(message) == 648
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(message)
print("sent", flush=True)
time.sleep(600)
"""


def test_stacks_are_in_the_report(daemon):
    daemon.start()
    client = daemon.adopt(
        subprocess.Popen(
            ["/usr/bin/python3", "-c", OLD_CLIENT_WITH_STACK, daemon.legacy], stdout=subprocess.PIPE
        )
    )
    assert client.stdout.readline() == b"sent\n"
    client.stdout.close()
    wait_until_seen(daemon, client.pid)
    client.kill()
    leak = daemon.wait_for_leak(client.pid)
    # The old text has the outermost function first, documents have the innermost.
    want = [("init", "model.py", 456), ("create_qkv", "attention.py", 123)]
    for row in (*leak["buffers"], *leak["sites"]):
        assert [(f["function"], f["file"], f["line"]) for f in row["stack"]] == want
    assert "attention.py:123" in daemon.run("leaks").stdout
