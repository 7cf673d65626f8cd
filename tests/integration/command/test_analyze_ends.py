# SPDX-License-Identifier: Apache-2.0
"""ttmem analyze: what processes left that ended, as servers report it."""

import os
import re

import pytest
from world import wait_for


def test_buffers_of_a_dead_client_are_leaks(ttmemd, analyze, tmp_path):
    """What the daemon removes from a dead client is a leak of that process."""
    daemon = ttmemd.start("--log-events")
    child = os.fork()
    if child == 0:
        client = daemon.old_client()
        client.alloc(0, 0, 0x1000, 64)
        client.alloc(1, 1, 0x2000, 128)
        client.free(0, 0x1000)
        client.query(0)
        os._exit(0)
    os.waitpid(child, 0)
    wait_for(lambda: f"PID {child} is dead" in daemon.text(), "the end")
    wait_for(lambda: f"from PID {child}" in daemon.text(), "the count")
    document = analyze(daemon.log)
    (leak,) = document["leaks"]
    assert (leak["pid"], leak["device"], leak["size"]) == (child, 1, 128)
    assert leak["how"] == "process_ended"
    assert document["summary"]["unseen_left"] == 0
    (process,) = [p for p in document["processes"] if p["pid"] == child]
    assert process["ended"] is True and process["leaked_bytes"] == 128


@pytest.mark.parametrize("options", [(), ("--log-events",), ("--log-history",)], ids=" ".join)
def test_the_log_of_a_server_tells_what_leaks_tells(ttmemd, analyze, ttmem, options):
    """Whatever the log has besides, and in whatever order: each buffer once, as "ttmem leaks" has them."""
    daemon = ttmemd.start(*options)
    wait_for(lambda: re.search("serving on|Server started", daemon.text()), "the first line")
    assert analyze(daemon.log)["summary"]["leaks"] == 0
    players = [
        daemon.player(
            "alloc 0 DRAM 0x1000 100 weights", f"alloc 1 L1 0x2a00 {size}", "alloc 0 DRAM 0x3000 5", "free 0 DRAM 0x3000",
            "free 0 DRAM 0x3000", "free 1 L1 0x4000", "free 1 L1 0x4000",
        )
        for size in (52, 48)
    ]  # fmt: skip
    client = os.fork()
    if client == 0:
        old = daemon.old_client()
        old.alloc(2, 0, 0x1000, 64)
        old.query(2)
        os._exit(0)
    os.waitpid(client, 0)
    for player in players:
        player.kill()
    pids = [client, *(player.pid for player in players)]
    told = [daemon.wait_for_leak(pid) for pid in pids]
    for pid in pids:
        wait_for(lambda pid=pid: f"Process {pid} exited but left" in daemon.text(), "its report")
    document = analyze(daemon.log)
    expected = [
        (leak["pid"], buffer["device"], buffer["type"], buffer["address"], buffer["size"])
        for leak in told
        for buffer in leak["buffers"]
    ]
    found = [(leak["pid"], leak["device"], leak["type"], leak["address"], leak["size"]) for leak in document["leaks"]]
    assert len(expected) == 5 and sorted(found) == sorted(expected)
    assert {leak["how"] for leak in document["leaks"]} == {"process_ended"}
    assert all(process["ended"] for process in document["processes"] if process["pid"] in pids)
    assert (document["summary"]["leaked_bytes"], document["summary"]["unseen_left"]) == (364, 0)
    assert ttmem("analyze", "--fail-on-leak", daemon.log).returncode == 86
    # The list of incidents has one row for all processes of a program, and no order with the leaks.
    incidents = [i for i in daemon.json("incidents")["incidents"] if i["kind"].endswith("_free")]
    counts = {(i["kind"], i["device"], i["address"]): i["count"] for i in incidents}
    assert counts == {("double_free", 0, "0x3000"): 2, ("unknown_free", 1, "0x4000"): 4}

    def findings():
        rows = analyze(daemon.log)["findings"]
        return {(f["pid"], f["kind"], f["device"], f["address"]): f["count"] for f in rows}

    each = {(pid, *place): count // 2 for pid in pids[1:] for place, count in counts.items()}
    wait_for(lambda: findings() == each, "what each process did")
    document = analyze(daemon.log)
    causes = {f["cause"] for f in document["findings"]}
    assert causes == ({"freed_before", "before_log"} if options else {"reported"})


# As the old system's documents promise it, and as ttmemd prints it for a process that has more than a list shows.
PROMISED = """\
⚠️  Process 12345 exited but left 5 buffers allocated:
    [Device 0] Buffer 0x800000000: 1048576 bytes DRAM (age: 15s)
    ...
"""


def test_the_leaks_that_the_documents_promise_are_understood(analyze, ttmem, tmp_path):
    log = tmp_path / "log"
    log.write_text(PROMISED)
    document = analyze(log)
    (leak,) = document["leaks"]
    assert (leak["pid"], leak["device"], leak["type"], leak["size"]) == (12345, 0, "DRAM", 1048576)
    assert (leak["address"], leak["how"], leak["line"]) == ("0x800000000", "process_ended", 2)
    assert document["summary"]["unseen_left"] == 4 and document["summary"]["allocs"] == 0
    (device,) = document["devices"]
    assert device["types"][0]["peak_bytes"] == 1048576 and device["types"][0]["live"] == 0
    text = ttmem("analyze", "--fail-on-leak", log)
    assert text.returncode == 86 and "DRAM, pid 12345, listed in line 2" in text.stdout
    assert "\n4 more buffers of ended processes are not listed\n" in text.stdout
    assert ttmem("analyze", "--leaked-addresses", log).stdout == "0x800000000\n"
    # The pid of a later process, which left the same address; and one of which only a region told.
    log.write_text(PROMISED + PROMISED + "⚠️  Process 7 (app) exited but left 5.0 MiB allocated, as tt-metal's region tells; x\n")
    document = analyze(log)
    assert (document["summary"]["leaks"], document["summary"]["unseen_left"]) == (2, 9)
    # The journal has no list; nor is anything known of the other device, but for what is listed of it.
    for text, code in ((PROMISED.splitlines()[0], 86), (PROMISED.replace("left 5", "left 1"), 0)):
        log.write_text(text)
        for option in ([], ["--device", "1"]):
            done = ttmem("analyze", "--fail-on-leak", *option, log)
            assert done.returncode == (code if option else 86)
            assert ("nothing was left" in done.stdout) == (bool(option) and code == 0)
    # Without the line before it, it is anybody's.
    log.write_text(PROMISED.splitlines()[1])
    assert ttmem("analyze", log).returncode == 1


END = "   PID 7 is dead, removing its buffers...\n   ✓ Removed 2 buffers (1 MB) from PID 7\n"
LIST = """\
⚠️  Process 7 exited but left 2 buffers allocated:
    [Device 0] Buffer 0x1000: 64 bytes L1 (age: 1s)
    [Device 0] Buffer 0x2000: 32 bytes L1 (age: 1s)
"""
OWN = """\
✓ [PID 7] Allocated 64 bytes of L1 on device 0 (buffer_id=0x1000)
✓ [PID 7] Allocated 16 bytes of L1 on device 0 (buffer_id=0x3000)
✗ [PID 7] Freed buffer 0x3000 on device 0 (16 bytes, FINAL)
✓ [PID 7] Allocated 32 bytes of L1 on device 0 (buffer_id=0x2000)
"""


@pytest.mark.parametrize("parts", [OWN + END, OWN + LIST, OWN + END + LIST, END + OWN, END + LIST + OWN, LIST + OWN])
def test_a_process_may_end_before_its_own_lines(analyze, tmp_path, parts):
    log = tmp_path / "log"
    log.write_text(parts)
    document = analyze(log)
    assert sorted((leak["size"], leak["how"]) for leak in document["leaks"]) == [(32, "process_ended"), (64, "process_ended")]
    summary = document["summary"]
    assert (summary["allocs"], summary["frees"], summary["unseen_left"]) == (3, 1, 0)
    assert document["findings"] == [] and document["processes"][0]["ended"] is True
