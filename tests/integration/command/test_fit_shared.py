# SPDX-License-Identifier: Apache-2.0
"""ttmem fit and ttmem map on a device that several processes use, and in memory for sharded buffers."""

import json

from machines import Machine, Region
from web import Server
from world import check_schema

GIB = 1 << 30
CARD = "wormhole_b0 n150 0 12884901888 94371840"  # 12 GiB of DRAM in 12 banks


def fit(world, size, *args):
    done = world.run("fit", size, "--json", *args)
    return done.returncode, check_schema(json.loads(done.stdout))["answers"]


def test_fit_counts_the_other_processes_of_the_device_and_says_who_would_have_to_give(world, tmp_path):
    small = world.player(f"device 3 0xa3 {CARD}", "alloc 3 DRAM 0x0 1048576 mine")
    large = world.player(f"device 3 0xa3 {CARD}", f"alloc 3 DRAM 0x20000000 {5 * GIB} weights")
    code, answers = fit(world, 9 * GIB, "--pid", small.pid)
    (answer,) = answers
    assert (code, answer["fits"], answer["reason"]) == (1, False, "held_by_others")
    assert [(row["pid"], row["name"]) for row in answer["in_the_way"]] == [(large.pid, "weights")]
    (other,) = answer["shared"]["others"]
    assert (other["pid"], other["placed"]) == (large.pid, True)
    assert 5 * GIB <= other["bytes"] < 5 * GIB + 4096
    text = world.run("fit", 9 * GIB, "--pid", small.pid).stdout
    assert f"pid {small.pid} (player), device 3, DRAM: no, held by other processes" in text
    assert f"of pid {large.pid}" in text
    # What fits beside it, and one that this allocator would place into the other's buffer.
    assert fit(world, 1 * GIB, "--pid", small.pid)[0] == 0
    (_, (answer,)) = fit(world, 6 * GIB + (1 << 20), "--pid", small.pid)
    assert answer["reason"] == "taken_by_others"
    maps = world.json("map", "--pid", small.pid)["maps"]
    assert [row["pid"] for row in maps] == [small.pid]
    assert maps[0]["shared"]["free"] < maps[0]["free"]
    text = world.text("map", "--pid", small.pid)
    assert f"on this device also: pid {large.pid} (player) 5.0 GiB" in text
    server = Server(world, tmp_path)
    for query in (f"size={9 * GIB}&pid={small.pid}", f"size={9 * GIB}&device=0xa3"):
        found = server.details(f"/api/v1/fit?{query}")["answers"]
        assert "held_by_others" in [row["reason"] for row in found]


def test_fit_counts_a_process_that_is_not_tracked(world, tmp_path):
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=5 * GIB))
    tracked = world.player(f"device 0 0x7 {CARD}", "alloc 0 DRAM 0x0 1048576 mine")
    code, answers = fit(world, 9 * GIB, "--pid", tracked.pid)
    (answer,) = answers
    assert (code, answer["reason"]) == (1, "held_by_others")
    assert [(row["pid"], row["placed"]) for row in answer["shared"]["others"]] == [(player.pid, False)]
    assert not answer["shared"]["placed"] and answer["in_the_way"] == []
    assert fit(world, 6 * GIB, "--pid", tracked.pid)[0] == 0


def test_fit_in_l1_small_depends_on_the_cores_of_a_sharded_buffer(world):
    """64 cores with 16 KiB each, of which 12 KiB are taken."""
    world.player(f"device 0 0xa1 {CARD}", "window 0 L1_SMALL 0x100000 16384 64",
                 "place 0 L1_SMALL 0x100000 12288 0 12288 1")
    where = ("--type", "L1_SMALL")
    assert fit(world, 4096, *where)[0] == 0  # on one core
    code, (answer,) = fit(world, 8192, *where)
    assert (code, answer["fits"], answer["reason"]) == (3, False, "depends_on_cores")
    text = world.run("fit", 8192, *where).stdout
    assert "depends on its cores" in text and "--cores N" in text
    code, (answer,) = fit(world, 8192, *where, "--cores", 1)
    assert (code, answer["reason"], answer["need_per_bank"]) == (1, "full", 8192)
    code, (answer,) = fit(world, 8192, *where, "--cores", 2)
    assert (code, answer["fits"], answer["need_per_bank"]) == (0, True, 4096)
    assert fit(world, 64 * 4096 + 1, *where)[0] == 1
    assert fit(world, 4096, *where, "--cores", 65)[1][0]["reason"] == "too_large"
    assert world.run("fit", 4096, "--cores", 0).returncode == 2


def test_fit_takes_the_size_in_each_bank_as_the_allocator_rounded_it(world, tmp_path):
    """As "Why did it fail?" asks: pages of 1 GiB, of which the last one is not full, take 2 GiB in one of 12 banks."""
    player = world.player(f"device 3 0xa3 {CARD}", "alloc 3 DRAM 0x0 1048576 mine")
    server = Server(world, tmp_path)
    asked = f"/api/v1/fit?size={11 * GIB}&pid={player.pid}"
    (plain,), (each,) = (server.details(asked + more)["answers"] for more in ("", f"&per_bank={2 * GIB}"))
    assert plain["fits"] and not each["fits"]
    assert each["need_per_bank"] == 2 * GIB and each["reason"] == "too_large"
