# SPDX-License-Identifier: Apache-2.0
"""ttmem buffers, growth and incidents: lists of what is there and of what went wrong."""

import csv
import io
import json
import os
import subprocess
import time

import pytest

from common import LIMIT
from world import wait_for


def test_buffers_json_has_every_field(world):
    before = time.time_ns()
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100",
        "push test", "push layer3",
        "alloc 0 DRAM 0x1000 100 weights",
        "alloc 0 DRAM 0x1000 100 weights",
        "pop", "pop",
        "kernel 0 0x2000 50 1",
        "alias 1 0x3000 20",
        TTMEM_STACKS="off",
    )
    document = world.json("buffers")
    assert document["exact"] is True and document["next"] is None
    weights, kernel, alias = document["buffers"]
    assert before <= weights.pop("born_ns") <= document["time_ns"]
    assert 0 <= weights.pop("age_ns") <= document["time_ns"] - before
    assert weights == {
        "pid": player.pid, "comm": "player", "device": 0, "device_uid": "0xabc", "type": "DRAM",
        "address": "0x1000", "size": 100, "refs": 2, "name": "weights", "phase": "test/layer3",
        "thread": player.pid, "flags": [], "stack": [], "site": None,
    }
    assert kernel["type"] == "KERNEL" and kernel["kernel"] == "fabric"
    assert kernel["name"] is None and kernel["phase"] is None
    assert alias["flags"] == ["alias"] and alias["size"] == 20 and alias["device_uid"] is None


def test_process_phase_is_shown_where_it_differs_from_the_buffers(world):
    world.player(
        "alloc 0 DRAM 0x1000 50",
        "push own", "alloc 0 DRAM 0x2000 40", "pop",
        "phase run/step", "alloc 0 DRAM 0x3000 30",
        "phase runner", "alloc 0 DRAM 0x4000 20",
        TTMEM_PHASE="run",
    )  # fmt: skip
    rows = world.json("buffers")["buffers"]
    assert [(row["phase"], row.get("process_phase")) for row in rows] == [
        ("run", None), ("own", "run"), ("run/step", None), ("runner", "run"),
    ]  # fmt: skip


@pytest.fixture
def three(world):
    first = world.player("alloc 0 DRAM 0x1000 10 a", "alloc 0 L1 0x1000 30 b", TTMEM_STACKS="off")
    second = world.player("phase load", "alloc 0 DRAM 0x1000 20 a", "alloc 3 L1 0x2000 5", TTMEM_STACKS="off")
    return world, first, second


def sizes(world, *args):
    return [buffer["size"] for buffer in world.json("buffers", *args)["buffers"]]


def test_buffers_are_sorted_and_filtered(three):
    world, first, second = three
    assert sizes(world) == sizes(world, "--sort", "size") == [30, 20, 10, 5]
    assert sizes(world, "--sort", "age") == [10, 30, 20, 5]
    assert sizes(world, "--pid", first.pid) == [30, 10]
    assert sizes(world, "--type", "DRAM") == [20, 10]
    assert sizes(world, "--type", "dram", "--pid", second.pid) == [20]
    assert sizes(world, "--device", "3") == [5]
    assert json.loads(world.run("buffers", "--device", "9", "--json").stdout)["buffers"] == []
    assert sizes(world, "--stacks") == [30, 20, 10, 5]


def groups(world, kind):
    document = world.json("buffers", "--by", kind)
    return [(g["key"], g["bytes"], g["buffers"]) for g in document["groups"]]


def test_buffers_are_grouped(three):
    world, first, second = three
    assert groups(world, "name") == [("b", 30, 1), ("a", 30, 2), (None, 5, 1)] or groups(
        world, "name"
    ) == [("a", 30, 2), ("b", 30, 1), (None, 5, 1)]
    assert groups(world, "phase") == [(None, 40, 2), ("load", 25, 2)]
    assert sorted(groups(world, "site"), key=str) == sorted(
        [("DRAM a", 30, 2), ("L1 b", 30, 1), ("L1 in load", 5, 1)], key=str
    )
    assert groups(world, "thread") == [
        (f"{first.pid}/{first.pid}", 40, 2), (f"{second.pid}/{second.pid}", 25, 2),
    ]


def test_buffers_csv_quotes_names(three):
    world, first, _ = three
    first.play("alloc 0 DRAM 0x9000 99 with,comma%22quote")
    rows = list(csv.DictReader(io.StringIO(world.text("buffers", "--csv"))))
    assert [row["size"] for row in rows] == ["99", "30", "20", "10", "5"]
    assert rows[0]["name"] == 'with,comma"quote' and rows[0]["address"] == "0x9000"
    rows = list(csv.DictReader(io.StringIO(world.text("buffers", "--by", "phase", "--csv"))))
    assert [(row["key"], row["bytes"]) for row in rows] == [("", "139"), ("load", "25")]


def test_buffers_table_has_its_columns(three):
    world, first, _ = three
    lines = world.text("buffers", "--pid", first.pid).splitlines()
    assert lines[0].split() == ["SIZE", "OCCUPIED", "TYPE", "DEV", "PID", "COMMAND", "ADDRESS", "REFS", "AGE",
                                "NAME", "PHASE"]
    assert lines[1].split()[:8] == ["30", "B", "-", "L1", "0", str(first.pid), "player", "0x1000"]
    assert len(lines) == 3


def test_a_hundred_thousand_buffers_are_exact_while_they_change(world):
    player = world.player("many 0 DRAM 0x100000 64 100000")
    player.process.stdin.write("burst 1 3000000\n")
    player.process.stdin.flush()
    # Checking all of them against the schema takes longer than all the rest.
    document = json.loads(world.text("buffers", "--device", "0", "--json"))
    assert document["exact"] is True and len(document["buffers"]) == 100000
    assert sum(buffer["size"] for buffer in document["buffers"]) == 6400000
    totals = world.json("smi", "-d", "0")["totals"]
    assert totals == {"bytes": 6400000, "buffers": 100000}


def test_a_closed_pipe_is_no_error(world):
    world.player("many 0 DRAM 0x100000 64 50000")
    for command in (["buffers"], ["buffers", "--json"], ["buffers", "--csv"], ["smi"], ["ps", "--json"]):
        process = world.start(*command)
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=LIMIT) == 0


def test_a_full_disk_is_an_error(world):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        result = subprocess.run([world.program, "smi"], env=world.env, stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    assert result.returncode == 1 and "could not be written" in result.stderr


def test_growth_names_what_keeps_growing(world):
    leaking = world.player("alloc 0 DRAM 0x10 1000 steady", "leak 0 4096 10")
    breathing = world.player("alloc 0 DRAM 0x1000 500 steady")
    document = world.json("growth", "--seconds", "1")
    assert document["samples"] == 5 and document["span_ns"] >= 900000000
    (site,) = document["sites"]
    assert site["pid"] == leaking.pid and site["name"] == "leaked" and site["type"] == "DRAM"
    assert site["grown"] == site["bytes"] - site["bytes_before"] > 0
    assert site["grown"] % 4096 == 0
    assert site["grown"] == 4096 * (site["buffers"] - site["buffers_before"])
    assert world.json("growth", "--seconds", "1", "--pid", breathing.pid)["sites"] == []
    text = world.text("growth", "--seconds", "1")
    assert "leaked" in text and str(leaking.pid) in text


def test_growth_of_simulated_workloads(world):
    """The slow leak is found, and the healthy ones are left in peace."""
    playing = {
        name: world.adopt(
            subprocess.Popen(
                [world.program, "demo", "--play", name, card, device, name, "60000", "20"],
                env={**world.env, "TTMEM": "1"}, stdout=subprocess.DEVNULL,
            )
        )
        for name, card, device in (
            ("llm", "n300", "0"), ("training", "n150", "4"), ("mesh", "galaxy", "10"), ("leak", "p150", "60"),
        )
    }  # fmt: skip
    for process in playing.values():
        world.show(process.pid)

    def in_full_swing():
        """Nothing grows any more but what leaks: the models are loaded."""
        document = world.json("growth", "--seconds", "3")
        return {site["name"] for site in document["sites"]} == {"prompt_cache.entry"} and document

    (site,) = wait_for(in_full_swing, "the leak alone")["sites"]
    assert site["pid"] == playing["leak"].pid and site["per_second"] > 0
    assert sum(site["ages"]) == site["buffers"] and sum(count > 0 for count in site["ages"]) >= 2


def test_incidents_name_the_call_sites(world):
    player = world.player(
        "push train",
        "alloc 0 DRAM 0x1000 100 victim", "free 0 DRAM 0x1000", "free 0 DRAM 0x1000",
        "free 0 L1 0x42", "free 0 L1 0x42",
        "alloc 1 CB 0x3000 10 cb", "alloc 1 CB 0x3000 20 cb2",
        "failed 2 DRAM 5000 1000",
        "place 3 L1 0x9000 4096 2 512 8", "clash 3 L1 0x9000 2 0x1000 0x8800 cbs",
    )
    document = world.json("incidents")
    found = {incident["kind"]: incident for incident in document["incidents"]}
    assert list(found) == ["double_free", "unknown_free", "size_change", "alloc_failed", "clash"]
    double = found["double_free"]
    assert (double["pid"], double["device"], double["type"], double["address"]) == (
        player.pid, 0, "DRAM", "0x1000")
    assert double["size"] == 100 and double["count"] == 1
    assert double["first"]["name"] == "victim" and double["first"]["phase"] == "train"
    assert double["first"]["time_ns"] < double["second"]["time_ns"] == double["time_ns"]
    unknown = found["unknown_free"]
    assert unknown["count"] == 2 and unknown["first"] is None and unknown["address"] == "0x42"
    change = found["size_change"]
    assert change["first"]["size"] == 10 and change["second"]["size"] == 20
    assert change["first"]["name"] == "cb" and change["second"]["name"] == "cb2"
    failed = found["alloc_failed"]
    assert failed["size"] == 5000 and failed["largest_free"] == 1000 and failed["address"] is None
    clash = found["clash"]
    assert (clash["device"], clash["type"], clash["address"], clash["space"]) == (3, "L1", "0x9000", 2)
    assert clash["size"] == 0x800 and clash["first"]["size"] == 4096 and clash["second"]["size"] == 0x8800
    assert clash["second"]["name"] == "cbs" and clash["second"]["phase"] == "train"
    text = world.text("incidents")
    assert f"double_free: pid {player.pid} (player), device 0, DRAM, address 0x1000, 100 B" in text
    assert "largest free block 1000 B" in text
    assert json.loads(world.run("incidents", "--pid", "1", "--json").stdout)["incidents"] == []
