# SPDX-License-Identifier: Apache-2.0
"""The time of day jumps while the daemon runs: ahead, back, to 1970. Nothing depends on it going forward."""

import struct
import time

import pytest

from world import descriptors, used, wait_for

SECOND = 10**9
DAY = 86400 * SECOND


@pytest.fixture
def clock(ttmemd, monkeypatch):
    """Sets the daemon's clocks: call with how far they are ahead."""
    program = ttmemd.build / "tests" / "programs" / "ttmemd-clock"
    if not program.exists():
        pytest.skip("the daemon with a clock of its own is not built")
    path = ttmemd.folder / "clock"
    path.write_bytes(bytes(16))
    ttmemd.env["TTMEM_TEST_CLOCK"] = str(path)
    plain = ttmemd.command
    monkeypatch.setattr(ttmemd, "command", lambda *args: [program, *plain(*args)[1:]])

    def jump(ahead_ns, since_boot_ns=0):
        with open(path, "r+b") as file:
            file.write(struct.pack("<qq", ahead_ns, since_boot_ns))

    return jump


def test_clock_jumps_change_no_report(ttmemd, clock):
    ttmemd.start("--scan-interval", "1")
    stays = ttmemd.player("alloc 0 DRAM 0x1000 1000 stays")
    want = {}
    for turn, ahead in enumerate((0, DAY, -DAY, 400 * DAY, -20000 * DAY, 3 * SECOND, 0)):
        clock(ahead)
        # One that is handed over and one that is found, both die and are reported; each in its turn.
        for settings in ({}, {"TTMEM_SOCKET": "none"}):
            size = 10 * turn + len(settings) + 1
            player = ttmemd.player(f"alloc 1 DRAM 0x1000 {size} turn{turn}", **settings)
            wait_for(lambda: player.pid in alive(ttmemd), "the process")
            player.kill()
            want[player.pid] = size
            wait_for(lambda: player.pid not in alive(ttmemd), "its end")
        stays.play(f"alloc 0 L1 {0x1000 * (turn + 1)} 1")
        document = ttmemd.json("smi")
        assert used(document, stays.pid) == {(0, "DRAM"): 1000, (0, "L1"): turn + 1}
        wait_for(lambda: reports(ttmemd) == want, f"the reports at {ahead}")
    written = ttmemd.json("status")["past"]["written"]
    wait_for(lambda: ttmemd.json("status")["past"]["written"] > written, "another sample")
    assert ttmemd.json("status")["past"]["dropped"] == 0
    assert "history in" not in ttmemd.text()
    # A report is told from an earlier one of the same process by when that started, so a clock that jumps
    # between two judgements of one book makes two: wait until no book of the dead is held any more.
    keeper = ttmemd.keeper()
    wait_for(lambda: descriptors(keeper).count("ttmem-book") == 1, "books that are let go")
    ttmemd.kill()
    clock(-DAY)
    ttmemd.start()
    assert reports(ttmemd) == want
    assert ttmemd.json("status")["unobserved_exits"] == 0


def alive(daemon):
    """Whom the daemon knows; the command itself looks into an empty folder."""
    blind = daemon.folder / "blind"
    blind.mkdir(exist_ok=True)
    document = daemon.json("ps", env={"TTMEM_PROC_ROOT": str(blind)})
    return {p["pid"] for p in document["processes"] if p["alive"]}


def reports(daemon):
    found = {}
    for process in daemon.json("leaks")["processes"]:
        assert process["pid"] not in found
        found[process["pid"]] = process["bytes"]
    return found


def test_statistics_every_ten_seconds(ttmemd, clock):
    """The old server told them; the time until then is made to pass."""
    begin = time.monotonic()
    ttmemd.start("--log-events")
    client = ttmemd.old_client()
    client.alloc(901, 0, 0x1000, 2048)
    wait_for(lambda: "Allocated 2048 bytes" in ttmemd.text(), "the event")
    for turn in range(1, 4):
        clock(0, turn * 10 * SECOND)
        wait_for(lambda: ttmemd.text().count("📊 Current Statistics:") >= turn, "the statistics")
        told = ttmemd.text().count("📊 Current Statistics:")
        assert told <= turn + (time.monotonic() - begin) / 10
    last = ttmemd.text().rpartition("📊 Current Statistics:")[2]
    assert "  Device 901:\n    Buffers: 1\n    DRAM: 2048 bytes (2 KB)\n" in last
    client.close()
