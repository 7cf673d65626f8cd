# SPDX-License-Identifier: Apache-2.0
"""The flight recorder of ttmemd: what is left when something has happened."""

import json
import os
import signal

import pytest

from world import wait_for


def recordings(ttmemd, document, rows, pid):
    """The files that a document names for a process."""
    found = ttmemd.json(document)[rows]
    return [row["recording"] for row in found if row["pid"] == pid and row.get("recording")]


def wait_for_leaked(ttmemd, pid):
    return wait_for(lambda: recordings(ttmemd, "leaks", "processes", pid), f"the file of {pid}")[0]


def wait_for_failed(ttmemd, pid):
    return wait_for(lambda: recordings(ttmemd, "incidents", "incidents", pid), f"the file of {pid}")[0]


def ask(ttmemd, *args):
    """A document from a recording."""
    result = ttmemd.run(*args, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def contents(buffers):
    return sorted((b["device"], b["type"], b["address"], b["size"], b["name"]) for b in buffers)


def test_who_is_killed_with_buffers_leaves_a_recording_of_its_last_minute(ttmemd):
    ttmemd.start()
    player = ttmemd.player("device 0 1 blackhole 0 0 1073741824 1048576")
    for i in range(200):
        player.play(f"alloc 0 DRAM {0x1000 * (i + 1)} {64 * (i + 1)} weights-{i}")
        if i % 2:
            player.play(f"free 0 DRAM {0x1000 * (i + 1)}")
    player.play("alloc 1 L1 0x5000 4096 left", "mark before-the-end")
    pid = player.process.pid
    player.kill()
    path = wait_for_leaked(ttmemd, pid)
    leak = ttmemd.wait_for_leak(pid)
    assert path == f"{ttmemd.state}/flight/{os.getuid()}/{os.path.basename(path)}"
    assert path in ttmemd.run("leaks").stdout
    # What is in it is what was left, and how it came to that.
    assert contents(ask(ttmemd, "buffers", "--from", path)["buffers"]) == contents(leak["buffers"])
    assert len(leak["buffers"]) == 101
    smi = ttmemd.run("smi", "--from", path)
    assert smi.returncode == 0 and str(pid) in smi.stdout, smi.stderr
    peak = ask(ttmemd, "buffers", "--from", path, "--at", "start")
    assert len(peak["buffers"]) < 101
    left = ask(ttmemd, "leaks", "--from", path)["processes"]
    assert [(process["pid"], process["exit"]) for process in left] == [(pid, leak["exit"])]


def test_a_failed_allocation_leaves_a_recording_and_the_next_ones_none(ttmemd):
    ttmemd.start()
    player = ttmemd.player("alloc 0 DRAM 0x1000 1048576 first", "alloc 0 DRAM 0x200000 2097152 second")
    player.play("failed 0 DRAM 4194304 1024")
    pid = player.process.pid
    path = wait_for_failed(ttmemd, pid)
    assert path in ttmemd.run("incidents").stdout
    found = ask(ttmemd, "buffers", "--from", path)["buffers"]
    assert [(b["size"], b["name"]) for b in sorted(found, key=lambda b: b["size"])] == [(1048576, "first"), (2097152, "second")]
    failed = ask(ttmemd, "incidents", "--from", path)["incidents"]
    assert [i["kind"] for i in failed] == ["alloc_failed"]
    # The daemon explains it as the recording does.
    (row,) = [i for i in ttmemd.json("incidents")["incidents"] if i["pid"] == pid]
    assert row["explanation"] in ttmemd.run("incidents").stdout
    for text in (row["explanation"], failed[0]["explanation"]):
        assert text.startswith("4.0 MiB of DRAM on device 0 were asked for by "), text
        assert " The largest free block had 1.0 KiB. It was held by: 3.0 MiB in 2 buffers, " in text, text
        assert text.endswith(" What would have to go is not known."), text
    # One that fails all the time does not write all the time.
    before = os.stat(path)
    for i in range(100):
        player.play(f"failed 0 DRAM {4194304 + i} 1024")
    count = wait_for(lambda: [i for i in ttmemd.json("incidents")["incidents"] if i["count"] > 90] or None, "all failures")
    assert count[0]["recording"] == path
    flight = wait_for(lambda: (s := ttmemd.json("status")["flight"])["refused"] > 0 and s, "refused files")
    assert flight["files"] == 1
    assert os.stat(path).st_ino == before.st_ino and os.stat(path).st_mtime_ns == before.st_mtime_ns


def test_what_failed_before_the_daemon_ran_has_no_recording(ttmemd):
    """The last minute is that of now."""
    early = ttmemd.player("alloc 0 DRAM 0x1000 64 a", "failed 0 DRAM 4194304 1024")
    ttmemd.start()
    pid = early.process.pid
    wait_for(lambda: [i for i in ttmemd.json("incidents")["incidents"] if i["pid"] == pid], "the incident")
    # Files are written in the order in which they were asked for.
    later = ttmemd.player("alloc 0 DRAM 0x1000 64 a", "failed 0 DRAM 4194304 1024")
    wait_for_failed(ttmemd, later.process.pid)
    assert [path.name for path in (ttmemd.state / "flight").glob(f"*/{pid}-*")] == []


def test_who_ends_in_order_leaves_no_recording(ttmemd):
    ttmemd.start()
    clean = ttmemd.player("alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000")
    clean.play("goodbye")
    clean.kill()
    other = ttmemd.player("alloc 0 DRAM 0x1000 64 a")
    other.kill()
    wait_for_leaked(ttmemd, other.process.pid)
    assert len(list((ttmemd.state / "flight").glob("*/*.ttrec"))) == 1


def test_who_is_killed_with_nothing_left_leaves_a_recording(ttmemd):
    """But not who is asked to end. Nobody waits for them before, so that how they ended is known everywhere."""
    ttmemd.start()
    players = [ttmemd.player("alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000") for _ in range(2)]
    asked, killed = (player.process for player in players)
    asked.send_signal(signal.SIGTERM)
    wait_for(lambda: ttmemd.json("status")["ended"] == 1, "its end")
    killed.send_signal(signal.SIGSEGV)
    folder = ttmemd.state / "flight" / str(os.getuid())
    (path,) = wait_for(lambda: list(folder.glob("*.ttrec")), "its file")
    assert path.name.startswith(f"{killed.pid}-")
    document = ask(ttmemd, "buffers", "--from", path, "--at", "end")
    assert document["buffers"] == [] and document["recording"]["events"] == 2
    assert ttmemd.json("leaks")["processes"] == []


def test_a_recording_goes_back_further_than_the_ring(ttmemd):
    """A ring has 16384 events here; the recording has ten times as many."""
    ttmemd.start()
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 first", TTMEM_HISTORY="16384")
    for _ in range(20):
        player.play("burst 0 4000")
        # As long as nobody reads them, they are in the ring; rounds come many times a second.
        before = ttmemd.json("status")["flight"]["rounds"]
        wait_for(lambda: ttmemd.json("status")["flight"]["rounds"] > before + 2, "rounds")
    pid = player.process.pid
    player.kill()
    path = wait_for_leaked(ttmemd, pid)
    document = ask(ttmemd, "buffers", "--from", path)
    assert document["recording"]["events"] == 160001 and document["recording"]["missed"] == 0
    assert [b["name"] for b in document["buffers"]] == ["first"]


def test_it_can_be_turned_off(ttmemd):
    ttmemd.start("--flight", "off")
    player = ttmemd.player("alloc 0 DRAM 0x1000 64 a")
    player.kill()
    assert ttmemd.wait_for_leak(player.process.pid)["recording"] is None
    assert not (ttmemd.state / "flight").exists()
    assert ttmemd.json("status")["flight"] is None


@pytest.mark.parametrize("count", [20])
def test_a_user_has_so_many_recordings_and_the_newest(ttmemd, count):
    """At most 16; and not all at once, so most of these are refused, and the status says so."""
    ttmemd.start()
    pids = []
    for _ in range(count):
        player = ttmemd.player("alloc 0 DRAM 0x1000 64 a")
        player.kill()
        pids.append(player.process.pid)
    for pid in pids:
        ttmemd.wait_for_leak(pid)
    flight = wait_for(lambda: (s := ttmemd.json("status")["flight"])["files"] + s["refused"] == count and s, "all of them")
    assert flight["files"] >= 8 and flight["refused"] > 0
    assert len(list((ttmemd.state / "flight").glob("*/*.ttrec"))) == min(flight["files"], 16)
