# SPDX-License-Identifier: Apache-2.0
"""What ttmemd makes of processes that only tt-metal's regions tell of: stock programs without libttmem."""

import json

import pytest

from machines import GIB, MIB, Machine, Region
from world import check_schema, wait_for

CHIP = 0x1111
CARD = f"0 {CHIP:#x} wormhole_b0 n150 0 {12 * GIB} {90 * MIB}"


@pytest.fixture
def machine(ttmemd):
    machine = Machine(ttmemd.folder / "machine")
    ttmemd.env["TTMEM_SHM_DIR"] = str(machine.shm)
    ttmemd.env["TTMEM_SYS_ROOT"] = str(machine.sys)
    return machine


@pytest.fixture
def served(ttmemd, machine):
    ttmemd.start("--http", "127.0.0.1:0")
    return ttmemd


def get(daemon, path):
    status, body = daemon.fetch(path, token=True)
    assert status == 200, body
    return check_schema(json.loads(body))


def stock(daemon, machine, **used):
    """A tt-metal program without libttmem, and its row in the region."""
    player = machine.attach(daemon.player(TTMEM="0"), CHIP)
    machine.region(Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, **used))
    return player


def device(daemon):
    (row,) = [row for row in get(daemon, "/api/v1/smi")["devices"] if row["uid"] == f"{CHIP:#x}"]
    return row["memory"]["DRAM"]


def points(daemon, **query):
    words = "&".join(f"{key}={value}" for key, value in query.items())
    lines = get(daemon, f"/api/v1/series?type=DRAM&{words}")["series"]
    return [point for line in lines for point in line["points"]]


def test_series_exist_for_processes_that_only_a_region_names(served, machine):
    player = stock(served, machine, DRAM=3 * GIB)
    wait_for(lambda: 3 * GIB in [p[1] for p in points(served, pid=player.pid)], "its line")
    assert 3 * GIB in [p[1] for p in points(served, device=f"{CHIP:#x}")]


def test_a_device_peak_does_not_fall_when_a_region_shrinks_or_goes(served, machine):
    book = served.player(f"device {CARD}", f"alloc 0 DRAM 0x1000 {5 * GIB}")
    player = stock(served, machine, DRAM=7 * GIB)
    wait_for(lambda: device(served)["peak"] == 12 * GIB, "the peak of both")
    machine.region(Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB))
    wait_for(lambda: device(served)["used"] == 6 * GIB, "the smaller region")
    assert device(served)["peak"] == 12 * GIB
    player.kill()
    machine.region(Region(4, CHIP, 0))
    wait_for(lambda: device(served)["used"] == 5 * GIB, "the book alone")
    assert device(served)["peak"] == 12 * GIB
    assert book.process.poll() is None


def test_a_device_peak_stays_when_one_process_with_a_smaller_peak_is_left(served, machine):
    served.player(f"device {CARD}", "alloc 0 DRAM 0x1000 100")
    big = served.player(f"device {CARD}", f"alloc 0 DRAM 0x2000 {2 * GIB}")
    wait_for(lambda: device(served)["peak"] == 2 * GIB + 100, "the peak of both")
    big.kill()
    wait_for(lambda: device(served)["used"] == 100, "its end")
    assert device(served)["peak"] == 2 * GIB + 100


def test_a_killed_process_without_a_book_is_reported_with_its_last_bytes(served, machine):
    player = stock(served, machine, DRAM=7 * GIB)
    wait_for(lambda: points(served, pid=player.pid), "it to be seen")
    machine.region(Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=6 * GIB, L1=5))
    player.kill()
    report = served.wait_for_leak(player.pid)
    assert report["bytes"] == 6 * GIB + 5 and report["source"] == "tt-metal"
    assert report["comm"] == "player" and report["how"] == "died"
    assert report["buffers"] == [] and report["buffer_count"] == 0 and report["sites"] == []
    assert report["buffers_known"] is False
    for document in (served.json("leaks"), get(served, "/api/v1/leaks")):
        assert document["exact"] is False and "buffers are not known" in document["notes"][0]
        assert [p["pid"] for p in document["processes"]] == [player.pid]
    text = served.run("leaks").stdout
    assert "left 6.0 GiB" in text and "buffers are not known" in text
    wait_for(lambda: f"Process {player.pid} (player) exited but left 6.0 GiB" in served.text(), "the notice")
    assert json.loads(served.fetch("/healthz")[1])["status"] == "ok"
    assert 'ttmem_incidents_total{kind="leak"} 1' in served.fetch("/metrics")[1]


def test_a_process_that_freed_everything_or_left_the_region_is_no_leak(served, machine):
    empty, gone, other = (machine.attach(served.player(TTMEM="0"), CHIP) for _ in range(3))

    def region(emptied=GIB, leaves=False):
        region = Region(4, CHIP, 0).process(empty.pid, "player", seconds_ago=0, DRAM=emptied)
        if not leaves:
            region.process(gone.pid, "player", seconds_ago=0, DRAM=GIB)
        machine.region(region.process(other.pid, "player", seconds_ago=0, DRAM=3))

    region()
    for player in (empty, gone, other):
        wait_for(lambda pid=player.pid: points(served, pid=pid), "it to be seen")
    region(emptied=0, leaves=True)
    empty.kill()
    gone.kill()
    other.kill()  # whoever is reported after them was looked at after them
    served.wait_for_leak(other.pid)
    assert [p["pid"] for p in served.json("leaks")["processes"]] == [other.pid]


def test_rows_that_were_stale_before_are_nobodys_leak(served, machine):
    """Containers have small pids of their own: the row of another one's process may have the same number."""
    player = machine.attach(served.player(TTMEM="0"), CHIP)
    old = Region(4, 0x2222, 1).process(1 << 22, "gone", seconds_ago=0, DRAM=GIB)
    machine.region(old)
    machine.region(Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=9))
    wait_for(lambda: points(served, pid=player.pid), "it to be seen")
    player.kill()
    assert served.wait_for_leak(player.pid)["bytes"] == 9
    assert len(served.json("leaks")["processes"]) == 1


def test_a_process_with_a_book_is_reported_once(served, machine):
    player = served.player(f"device {CARD}", "alloc 0 DRAM 0x1000 4096")
    machine.attach(player, CHIP)
    machine.region(Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=4096))
    wait_for(lambda: points(served, pid=player.pid), "it to be seen")
    player.kill()
    report = served.wait_for_leak(player.pid)
    assert report["buffer_count"] == 1 and report["source"] == "book"
    last = stock(served, machine, DRAM=5)
    wait_for(lambda: points(served, pid=last.pid), "it to be seen")
    last.kill()
    served.wait_for_leak(last.pid)
    assert len(served.leaks(player.pid)) == 1


def test_a_process_that_executes_another_program_is_reported_once(served, machine):
    player = served.player(f"device {CARD}", "alloc 0 DRAM 0x1000 4096")
    machine.attach(player, CHIP)
    row = Region(4, CHIP, 0).process(player.pid, "player", seconds_ago=0, DRAM=4096)
    machine.region(row)
    wait_for(lambda: points(served, pid=player.pid), "it to be seen")
    player.process.stdin.write("exec\n")
    player.process.stdin.flush()
    assert served.wait_for_leak(player.pid)["exec"]
    last = machine.attach(served.player(TTMEM="0"), CHIP)
    machine.region(row.process(last.pid, "player", seconds_ago=0, DRAM=5))
    wait_for(lambda: points(served, pid=last.pid), "it to be seen")
    player.kill()
    last.kill()  # whoever is reported after it was looked at after it
    served.wait_for_leak(last.pid)
    assert len(served.leaks(player.pid)) == 1


def test_rows_in_a_strangers_region_are_nobodys_leak(served, machine):
    player, last = (machine.attach(served.player(TTMEM="0"), CHIP) for _ in range(2))

    def region(*players):
        region = Region(4, CHIP, 0)
        for one in players:
            region.process(one.pid, "player", seconds_ago=0, DRAM=9)
        machine.region(region)

    region(player, last)
    for one in (player, last):
        wait_for(lambda pid=one.pid: points(served, pid=pid), "it to be seen")
    region(last)
    stranger = Region(4, 0x2222, 1).process(player.pid, "player", seconds_ago=0, DRAM=GIB)
    machine.region(stranger, user=65534, mode=0o644)
    player.kill()
    last.kill()  # whoever is reported after it was looked at after it
    assert served.wait_for_leak(last.pid)["bytes"] == 9
    assert [p["pid"] for p in served.json("leaks")["processes"]] == [last.pid]


def failure(daemon, pid):
    def find():
        rows = get(daemon, "/api/v1/incidents?kind=alloc_failed")["incidents"]
        return [row for row in rows if row["pid"] == pid]

    return wait_for(find, "the incident")[0]


def test_a_region_process_is_among_the_holders_of_a_failed_allocation(served, machine):
    player = stock(served, machine, DRAM=7 * GIB)
    unlucky = served.player(f"device {CARD}", "alloc 0 DRAM 0x1000 100", f"failed 0 DRAM {8 * GIB} 0")
    holders = {h["pid"]: h["used"] for h in failure(served, unlucky.pid)["holders"]}
    assert holders == {player.pid: 7 * GIB, unlucky.pid: 100}


def test_holders_of_a_failed_allocation_are_matched_by_card(served, machine):
    """Another process numbers the chip otherwise; a third has the same number for another chip."""
    same = served.player(f"device 5 {CARD[2:]}", "alloc 5 DRAM 0x1000 700 weights")
    other = served.player(
        f"device 0 {0x2222:#x} wormhole_b0 n150 0 {12 * GIB} {90 * MIB}", "alloc 0 DRAM 0x1000 9 elsewhere"
    )
    for player in (same, other):
        wait_for(lambda pid=player.pid: points(served, pid=pid), "it to be seen")
    unlucky = served.player(f"device {CARD}", f"failed 0 DRAM {8 * GIB} 0")
    row = failure(served, unlucky.pid)
    assert {h["pid"]: h["used"] for h in row["holders"]} == {same.pid: 700}
    assert [(s["name"], s["bytes"]) for s in row["sites"]] == [("weights", 700)]


def test_the_old_protocol_counts_regions_too(ttmemd, machine):
    ttmemd.start()
    stock(ttmemd, machine, DRAM=7 * GIB)
    client = ttmemd.old_client()
    assert client.query(0)[0] == 7 * GIB
    client.close()
