# SPDX-License-Identifier: Apache-2.0
"""ttmem peak: what was live at the highest moment, from books as they are."""

import json
import os
import signal
import time

from world import check_schema

RING = 16384
GRAVES = 4096


def groups(peak):
    """{key: (bytes, buffers)}; the groups and what is not known must be the peak, to the byte."""
    assert peak["known_bytes"] + peak["unknown_bytes"] == peak["bytes"]
    assert sum(group["bytes"] for group in peak["groups"]) == peak["known_bytes"]
    assert sum(group["buffers"] for group in peak["groups"]) == peak["buffers"]
    return {group["key"]: (group["bytes"], group["buffers"]) for group in peak["groups"]}


def only(world, *args):
    (peak,) = world.json("peak", *args)["peaks"]
    return peak


def test_what_was_freed_since_is_shown(world):
    before = time.time_ns()
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100",
        "alloc 0 DRAM 0x1000 100 weights",
        "push load", "alloc 0 DRAM 0x2000 50 staging", "alloc 0 DRAM 0x3000 50 staging", "pop",
        "free 0 DRAM 0x2000", "free 0 DRAM 0x3000",
        "alloc 0 DRAM 0x4000 60 cache",
        TTMEM_STACKS="off",
    )  # fmt: skip
    peak = only(world)
    assert before <= peak["time_ns"] == peak["moment_ns"]
    assert (peak["pid"], peak["comm"], peak["device"], peak["device_uid"], peak["type"]) == (
        player.pid, "player", 0, "0xabc", "DRAM",
    )  # fmt: skip
    assert peak["bytes"] == 200 and peak["exact"] is True and peak["bound"] == "exact"
    assert groups(peak) == {"DRAM weights": (100, 1), "DRAM staging": (100, 2)}
    assert groups(only(world, "--by", "name")) == {"weights": (100, 1), "staging": (100, 2)}
    assert groups(only(world, "--by", "phase")) == {None: (100, 1), "load": (100, 2)}
    lines = world.text("peak", "--by", "name").splitlines()
    assert lines[0].startswith("device 0 DRAM peak 200 B at ")
    assert lines[0].endswith(f"(pid {player.pid} player), exact")
    assert sorted(line.split() for line in lines[1:]) == [
        ["100", "B", "50.0%", "1", "weights"], ["100", "B", "50.0%", "2", "staging"],
    ]  # fmt: skip


def test_call_sites_are_named(world):
    world.player("alloc 0 L1 0x1000 8 scratch", "free 0 L1 0x1000")
    (group,) = only(world)["groups"]
    assert group["site"]["file"].endswith("player.c") and group["type"] == "L1"
    assert "scratch at " in world.text("peak") and "(player.c:" in world.text("peak")


def test_filters(world):
    first = world.player("alloc 0 DRAM 0x1000 10", "alloc 3 L1 0x1000 30")
    second = world.player("alloc 0 DRAM 0x1000 20", "free 0 DRAM 0x1000")

    def found(*args):
        return [(peak["pid"], peak["device"], peak["type"]) for peak in world.json("peak", *args)["peaks"]]

    rows = [(first.pid, 3, "L1"), (second.pid, 0, "DRAM"), (first.pid, 0, "DRAM")]
    assert found() == rows  # the largest first
    assert found("--pid", first.pid) == [rows[0], rows[2]]
    assert found("-d", 0) == rows[1:] and found("--device", 3) == rows[:1]
    assert found("--type", "L1") == rows[:1]
    nothing = world.run("peak", "--type", "TRACE")
    assert nothing.stdout == "" and "no peak of type TRACE" in nothing.stderr
    assert world.run("peak", "--by", "thread").returncode == 2


def test_beyond_history_and_graveyard_the_rest_is_a_row_of_its_own(world):
    player = world.player(
        "alloc 0 DRAM 0x1000 1000 weights", "alloc 0 DRAM 0x2000 500 staging", "free 0 DRAM 0x2000",
        f"burst 0 {RING}",
        TTMEM_STACKS="off",
    )  # fmt: skip
    peak = only(world, "--pid", player.pid, "--type", "DRAM")
    assert peak["bytes"] >= 1500 and peak["exact"] is False
    assert groups(peak)["DRAM weights"] == (1000, 1)
    assert peak["unknown_bytes"] == 500
    lines = world.text("peak", "--type", "DRAM").splitlines()
    assert lines[0].endswith(", 1000 B of it known")
    assert lines[-1].split(maxsplit=3) == ["500", "B", "33.3%", "not known: freed too long ago"]


def test_a_mesh_is_told_once(world):
    calls = [f"alloc {device} DRAM 0x1000 64 shard" for device in (0, 1, 2, 3, 5)]
    player = world.player(*calls, "alloc 7 DRAM 0x1000 65 shard", TTMEM_STACKS="off")
    heads = [line for line in world.text("peak").splitlines() if " peak " in line]
    assert [line.split(" at ")[0] for line in heads] == [
        "device 7 DRAM peak 65 B", "devices 0-3, 5 DRAM peak 64 B each",
    ]  # fmt: skip
    assert len(world.json("peak", "--pid", player.pid)["peaks"]) == 6


def test_buffers_inside_others_are_left_out_and_overlaps_are_not_suspected(world):
    world.player("alloc 1 L1 0x1000 100 outer", "alias 1 0x1000 20", TTMEM_STACKS="off")
    world.player("alloc 1 L1 0x1000 100 other", "free 1 L1 0x1000", TTMEM_STACKS="off")
    document = world.json("peak", "--type", "L1")
    assert [groups(peak) for peak in document["peaks"]] == [{"L1 outer": (100, 1)}, {"L1 other": (100, 1)}]
    assert document["notes"] == []


def test_the_dead_while_a_child_holds_their_book(world):
    player = world.player("alloc 0 DRAM 0x1000 64 lost", "alloc 0 DRAM 0x2000 64 gone", "free 0 DRAM 0x2000",
                          TTMEM_STACKS="off")  # fmt: skip
    child = player.play("hold")
    world.show(child)
    player.process.send_signal(signal.SIGKILL)
    player.process.wait()
    try:
        result = world.run("peak")
        assert "player, ended), exact" in result.stdout
        assert [line.split()[-1] for line in result.stdout.splitlines()[1:]] == ["gone", "lost"]
    finally:
        os.kill(child, signal.SIGKILL)


def test_run_tells_what_was_live_at_the_peak(ttmem, build, tmp_path):
    script = "alloc 0 DRAM 0x1000 100 weights\nalloc 0 DRAM 0x2000 50 staging\nfree 0 DRAM 0x2000\n"
    done = ttmem(
        "run", "--json", tmp_path / "run.json", "--", build / "tests" / "programs" / "player",
        input=script, env={"TTMEM_STACKS": "off"},
    )  # fmt: skip
    assert "peak: device 0 DRAM 150 B\n" in done.stderr
    lines = done.stderr.split("live at the peak:\n")[1].splitlines()
    assert lines[0].startswith("  device 0 DRAM peak 150 B at ") and lines[0].endswith(" player), exact")
    assert lines[1].split() == ["100", "B", "66.7%", "1", "weights"]
    assert lines[2].split() == ["50", "B", "33.3%", "1", "staging"]
    (peak,) = check_schema(json.loads((tmp_path / "run.json").read_text()))["peaks"]
    assert peak["at_peak"]["ended"] is True and peak["at_peak"]["exact"] is True
    assert groups(peak["at_peak"]) == {"DRAM weights": (100, 1), "DRAM staging": (50, 1)}
