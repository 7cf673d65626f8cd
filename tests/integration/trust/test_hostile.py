# SPDX-License-Identifier: Apache-2.0
"""ttmemd and processes that write into their own books, and send, what no library would.

Whatever they do affects only themselves.
"""

import os
import subprocess

import pytest

from world import end_children, used, wait_for


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def hostile(daemon, *words):
    """tests/programs/hostile.c; returns when it has begun."""
    process = daemon.adopt(
        subprocess.Popen(
            [str(word) for word in (daemon.build / "tests" / "programs" / "hostile", *words)],
            env={**daemon.env, "TTMEM": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert int(process.stdout.readline()) == process.pid
    process.stdout.close()
    return process


def processes(daemon):
    return {p["pid"]: p for p in daemon.json("smi", env=daemon.blind)["processes"]}


def descriptors_of(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def test_books_per_process_are_limited(daemon):
    daemon.start()
    before = descriptors_of(daemon)
    process = hostile(daemon, "books", 200)
    wait_for(lambda: daemon.json("status")["books_refused"] > 180, "refusals")
    assert descriptors_of(daemon) < before + 3 * 16 + 30
    player = daemon.player("alloc 0 DRAM 0x1000 5")
    wait_for(lambda: player.pid in processes(daemon), "another process")
    process.kill()
    wait_for(lambda: process.pid not in processes(daemon), "its end")


def test_a_process_cannot_claim_that_the_daemon_keeps_its_book(daemon):
    daemon.start()
    process = hostile(daemon, "source")
    wait_for(lambda: daemon.json("status")["books_refused"] == 1, "the refusal")
    assert processes(daemon)[process.pid]["source"] == "book"
    daemon.kill()
    daemon.start()
    assert processes(daemon)[process.pid]["source"] == "book"


def test_exec_is_noticed_while_a_child_holds_the_connection(daemon):
    daemon.start("--scan-interval", "1")
    player = daemon.player("alloc 0 DRAM 0x1000 77")
    wait_for(lambda: player.pid in processes(daemon), "the process")
    child = player.play("hold")
    try:
        player.process.stdin.write("exec\n")
        player.process.stdin.flush()
        assert daemon.wait_for_leak(player.pid)["bytes"] == 77
        assert player.process.poll() is None
        assert player.pid not in processes(daemon)
    finally:
        end_children(child)


@pytest.mark.parametrize("what", ["incidents", "failed"])
def test_a_flood_of_incidents_does_not_hide_those_of_others(daemon, what):
    daemon.start()
    process = hostile(daemon, what)
    player = daemon.player("alloc 0 DRAM 0x1000 5", "failed 0 DRAM 4096 1")
    kind = "alloc_failed" if what == "failed" else "unknown_free"
    wait_for(
        lambda: any(
            i["pid"] == process.pid and i["kind"] == kind
            for i in daemon.json("incidents", env=daemon.blind)["incidents"]
        ),
        "its incidents",
    )
    wait_for(lambda: player.pid in processes(daemon), "the other process")
    assert used({"processes": [processes(daemon)[player.pid]]}, player.pid) == {(0, "DRAM"): 5}
    player.kill()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 5
