# SPDX-License-Identifier: Apache-2.0
"""ttmem smi and ttmem ps: what is held, by whom, of what."""

import csv
import io
import json
import re
import signal
import subprocess
import time

from common import LIMIT
from world import TYPES, check_schema, used, wait_for

CARD = "device 0 0x1f2e3d4c5b6a7988 wormhole_b0 n300 0 12884901888 94371840"
REMOTE = "device 1 0x1f2e3d4c5b6a7989 wormhole_b0 n300 1 12884901888 94371840"


def test_smi_without_processes_is_empty(world):
    document = world.json("smi")
    assert document["devices"] == document["processes"] == []
    assert document["totals"] == {"bytes": 0, "buffers": 0}
    assert document["exact"] is True and document["next"] is None
    assert "no tracked process found" in document["notes"][0]
    assert world.json("ps")["processes"] == []
    assert "Total: 0 B in 0 buffers on 0 devices" in world.text("smi")


def test_a_wide_table_has_no_empty_column_of_sensors(world):
    """test_machines.py has the pictures of cards with sensors."""
    world.player(CARD, "alloc 0 DRAM 0x1000 1048576 weights")
    lines = world.text("smi", env={"COLUMNS": "120"}).splitlines()
    heading = next(line for line in lines if "Card" in line)
    assert "Sensors" not in heading and heading.split()[:5] == ["|", "Dev", "|", "Card", "|"]
    assert {len(line) for line in lines if line.startswith(("|", "+"))} == {120}


def test_smi_shows_one_process(world):
    before = time.time_ns()
    player = world.player(
        CARD,
        "alloc 0 DRAM 0x1000 1048576 weights",
        "alloc 0 DRAM 0x2000 4096 scale",
        "free 0 DRAM 0x2000",
        "alloc 0 L1 0x1000 2048",
        "alias 0 0x3000 512",
        "hooked 0 DRAM 999",
    )
    document = world.json("smi")
    (device,) = document["devices"]
    assert device["device"] == 0 and device["uid"] == "0x1f2e3d4c5b6a7988"
    assert device["arch"] == "wormhole_b0" and device["card"] == "n300"
    assert device["remote"] is False and device["by_number"] is False
    assert list(device["memory"]) == TYPES
    assert device["memory"]["DRAM"] == {
        "used": 1048576, "occupied": None, "buffers": 1, "peak": 1052672, "capacity": 12884901888, "bound": "exact",
    }
    assert device["memory"]["L1"] == {
        "used": 2048, "occupied": None, "buffers": 1, "peak": 2048, "capacity": 94371840, "bound": "exact",
    }
    # An alias is a buffer that adds no bytes.
    assert device["memory"]["CB"] == {
        "used": 0, "occupied": 0, "buffers": 1, "peak": 0, "capacity": None, "bound": "exact",
    }
    (process,) = document["processes"]
    assert process["pid"] == process["ns_pid"] == player.pid
    assert process["comm"] == "player" and process["source"] == "book"
    assert process["alive"] is True and process["exact"] is True
    assert abs(process["start_ns"] - before) < 60e9
    assert before <= process["last_activity_ns"] <= document["time_ns"]
    assert used(document, player.pid) == {(0, "DRAM"): 1048576, (0, "L1"): 2048}
    assert document["totals"] == {"bytes": 1050624, "buffers": 3}
    assert document["notes"] == []


def test_a_stray_free_makes_no_device(world):
    """One call with a wrong number: an incident, but no device that does not exist."""
    player = world.player("alloc 0 DRAM 0x1000 4096", "free 1023 DRAM 0x1000", "free 7 L1 0x1000")
    assert [device["device"] for device in world.json("smi")["devices"]] == [0]
    (process,) = world.json("ps")["processes"]
    assert [device["device"] for device in process["devices"]] == [0] and process["exact"]
    assert process["stray_frees"] == 2
    incidents = world.json("incidents")["incidents"]
    assert sorted((i["kind"], i["device"]) for i in incidents) == [("unknown_free", 7), ("unknown_free", 1023)]
    assert "1023" not in world.text("smi", "--details", "-a")
    # Doctor still tells that this process frees what it never reported.
    assert "freed 2 buffers that were never reported" in world.run("doctor").stdout
    # Used after all, it is a device, and nothing that was counted is lost.
    player.play("alloc 1023 DRAM 0x2000 64")
    (process,) = world.json("ps")["processes"]
    assert [device["device"] for device in process["devices"]] == [0, 1023] and process["stray_frees"] == 1
    assert process["devices"][1]["memory"]["DRAM"]["unknown_frees"] == 1


def test_smi_has_all_counters(world):
    player = world.player(
        "alloc 0 L1 0x1000 64",
        "alloc 0 L1 0x1000 64",
        "free 0 L1 0x1000",
        "alloc 0 L1 0x1000 128",
        "free 0 L1 0x1000",
        "free 0 L1 0x1000",
        "free 0 L1 0x9999",
        "hooked 0 L1 5",
        "alloc 5000 L1 0x1000 64",
        "alloc 0 DRAM 0x1000 16",
        "alloc 0 L1 0x1000 16",
        "free 0 ANY 0x1000",
    )
    document = world.json("ps")
    (process,) = document["processes"]
    assert process["pid"] == player.pid and process["rejected"]["device"] == 1
    memory = process["devices"][0]["memory"]
    counted = {
        name: memory["L1"][name]
        for name in ("used", "buffers", "peak", "allocs", "frees", "unknown_frees", "double_frees",
                     "size_changes", "realloc_live", "ambiguous_frees", "hooked", "overflow_frees")
    }
    assert counted == {
        "used": 0, "buffers": 0, "peak": 128, "allocs": 4, "frees": 4, "unknown_frees": 1,
        "double_frees": 1, "size_changes": 1, "realloc_live": 1, "ambiguous_frees": 1, "hooked": 1,
        "overflow_frees": 0,
    }
    assert memory["DRAM"]["used"] == 16
    assert memory["TRACE"]["last_activity_ns"] is None


def test_processes_share_devices_by_id(world):
    world.player(
        "device 3 0xabc wormhole_b0 n150 0 1000 100", "alloc 3 DRAM 0x1000 10", "alloc 7 L1 0x0 5"
    )
    world.player("device 1 0xabc blackhole - 0 1000 200", "alloc 1 DRAM 0x1000 20", "alloc 7 L1 0x0 6")
    world.player("alloc 1 DRAM 0x1000 40")
    document = world.json("smi")
    rows = [(d["device"], d["uid"], d["by_number"], d["memory"]["DRAM"]["used"],
             d["memory"]["L1"]["used"]) for d in document["devices"]]
    assert rows == [
        (1, None, True, 40, 0), (1, "0xabc", False, 30, 0), (7, None, True, 0, 11),
    ]
    shared = document["devices"][1]
    # The first process is believed; peaks of two processes need not have occurred at the same time.
    assert shared["arch"] == "wormhole_b0" and shared["card"] == "n150"
    assert shared["memory"]["L1"]["capacity"] == 100
    assert shared["memory"]["DRAM"]["peak"] is None
    assert document["devices"][0]["memory"]["DRAM"]["peak"] == 40
    assert any("another L1 capacity" in note for note in document["notes"])
    assert document["totals"]["bytes"] == 81


def test_smi_filters_devices(world):
    world.player(CARD, REMOTE, "alloc 0 DRAM 0x1000 10", "alloc 1 DRAM 0x1000 20")
    world.player("alloc 2 DRAM 0x1000 40")
    one = world.json("smi", "-d", "0x1f2e3d4c5b6a7989")
    assert [d["device"] for d in one["devices"]] == [1]
    assert len(one["processes"]) == 1 and len(one["processes"][0]["devices"]) == 1
    assert one["totals"] == {"bytes": 20, "buffers": 1}
    two = world.json("smi", "-d", "0", "-d", "2")
    assert [d["device"] for d in two["devices"]] == [0, 2]
    assert two["totals"]["bytes"] == 50
    assert json.loads(world.run("smi", "-d", "9", "--json").stdout)["devices"] == []


def test_closed_devices_are_shown_on_request(world):
    world.player(CARD, REMOTE, "alloc 1 DRAM 0x1000 20", "close 0")
    table = world.text("smi")
    assert "0x1f2e3d4c5b6a7988" not in table and "0x1f2e3d4c5b6a7989" in table
    assert "0x1f2e3d4c5b6a7988" in world.text("smi", "-a")
    assert "0x1f2e3d4c5b6a7988" in world.text("smi", "-d", "0")
    closed = [d["closed"] for d in world.json("smi")["processes"][0]["devices"]]
    assert closed == [True, False]


def test_smi_table_has_its_columns(world):
    player = world.player(
        CARD, REMOTE, "alloc 0 DRAM 0x1000 9663676416 w", "alloc 0 TRACE 0x1000 1073741824",
        "alloc 0 L1 0x0 1048576", "alloc 0 L1_SMALL 0x0 1048576", "alloc 0 CB 0x0 1048576",
        "kernel 0 0x0 1048576 0", "alloc 1 SYSTEM_MEMORY 0x0 4096",
    )
    table = world.text("smi", env={**world.env, "LC_ALL": "C"})
    lines = table.splitlines()
    assert all(len(line) == 80 for line in lines), table
    assert re.fullmatch(r"\| ttmem \d+\.\d+\.\d+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \|", lines[1])
    pid = f"{player.pid:7}"
    user = world.json("smi")["processes"][0]["user"]
    lines = [re.sub(r" +\d+ (ms|s) \|$", "   0 s |", line) for line in lines]
    assert lines[3:] == [
        "|   Dev | Card                   | Memory       Used /      Total              |",
        "+-------+------------------------+---------------------------------------------+",
        "|     0 | n300 wormhole_b0       | DRAM    10.0 GiB /   12.0 GiB ######. 83.3% |",
        "|       | 0x1f2e3d4c5b6a7988     | L1       4.0 MiB /   90.0 MiB .......  4.4% |",
        "|    1R | n300 wormhole_b0       | DRAM         0 B /   12.0 GiB .......  0.0% |",
        "|       | 0x1f2e3d4c5b6a7989     | L1           0 B /   90.0 MiB .......  0.0% |",
        "|       |                        | Host     4.0 KiB /    unknown               |",
        "+-------+------------------------+---------------------------------------------+",
        "| Total: 10.0 GiB in 7 buffers on 2 devices                                    |",
        "+------------------------------------------------------------------------------+",
        "| R: a remote chip, without a node of its own                                  |",
        "+------------------------------------------------------------------------------+",
        "|     PID User     Command      Dev       DRAM         L1 Buffers From    Idle |",
        "+------------------------------------------------------------------------------+",
        f"| {pid} {user:8.8} player         0   10.0 GiB    4.0 MiB       6 book   0 s |",
        f"| {pid} {user:8.8} player        1R        0 B        0 B       1 book   0 s |",
        "+------------------------------------------------------------------------------+",
    ]
    utf8 = world.text("smi", env={**world.env, "LC_ALL": "C.UTF-8"})
    assert "██████░ 83.3%" in utf8 and "\033" not in utf8
    details = world.text("smi", "--details")
    assert all(len(line) == 80 for line in details.splitlines()), details
    for name in TYPES:
        assert name in details


def test_smi_csv_has_a_row_per_device_and_type(world):
    world.player(CARD, "alloc 0 DRAM 0x1000 10", "alloc 1 L1 0x0 5")
    rows = list(csv.DictReader(io.StringIO(world.text("smi", "--csv"))))
    assert len(rows) == 2 * len(TYPES)
    assert rows[0]["device"] == "0" and rows[0]["type"] == "DRAM" and rows[0]["used"] == "10"
    assert rows[0]["capacity"] == "12884901888" and rows[0]["bound"] == "exact"
    assert (row := rows[len(TYPES) + TYPES.index("L1")])["device"] == "1" and (row["uid"], row["capacity"]) == ("", "")


def test_smi_watch_prints_json_again_and_again(world):
    player = world.player("alloc 0 DRAM 0x1000 10")
    watch = world.start("smi", "-w", "-r", "20", "--json")
    first = check_schema(json.loads(watch.stdout.readline()))
    assert first["totals"]["bytes"] == 10
    player.play("alloc 0 DRAM 0x2000 20")
    wait_for(lambda: json.loads(watch.stdout.readline())["totals"]["bytes"] == 30)
    player.kill()
    wait_for(lambda: json.loads(watch.stdout.readline())["processes"] == [])
    watch.send_signal(signal.SIGINT)
    # It may be writing just now; then it goes on when there is room.
    watch.stdout.read()
    assert watch.wait(timeout=LIMIT) == 0


def test_smi_watch_redraws_in_place(world):
    world.player("alloc 0 DRAM 0x1000 10")
    command = f"timeout -s INT 2 {world.program} smi -w -r 50"
    result = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env={**world.env, "TERM": "xterm", "NO_COLOR": "1"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT,
    )
    assert result.stdout.startswith("\033[2J\033[?25l\033[H+")
    assert result.stdout.count("\033[H") > 3 and result.stdout.count("\033[2J") == 1
    assert result.stdout.rstrip().endswith("\033[?25h")
    assert "\033[3" not in result.stdout


def test_smi_escapes_hostile_names(world):
    player = world.player(
        "device 0 0x1 %1b[31mred n%22 0 1 1",
        "push %ff%fe/%e2%80%ae",
        "alloc 0 DRAM 0x1000 10 a%0ab%1b[2J%00c",
    )
    (buffer,) = world.json("buffers", "--pid", player.pid)["buffers"]
    assert buffer["name"] == "a\nb\x1b[2J" and buffer["phase"] == "\ufffd\ufffd/\u202e"
    for command in (["smi"], ["ps"], ["buffers"], ["buffers", "--csv"], ["buffers", "--by", "phase"],
                    ["history", "0x1000"], ["incidents"]):
        text = world.text(*command)
        assert "\033" not in text and "\u202e" not in text


def test_smi_shows_declared_banks(world):
    """What a map of the memory needs: the banks of a device, and what a buffer takes of each."""
    world.player("device 0 0xabc wormhole_b0 n150 0 12000 1200 12", "alloc 0 DRAM 0x40 120")
    (device,) = world.json("smi")["devices"]
    assert device["memory"]["DRAM"]["bank"] == {"base": 0, "size": 1000, "banks": 12, "alignment": 32}
    assert device["memory"]["L1"]["bank"]["size"] == 100
    assert "bank" not in device["memory"]["TRACE"]
    (buffer,) = world.json("buffers")["buffers"]
    assert "size_per_bank" not in buffer  # the player does not say: as the device's default


def test_a_share_of_more_than_the_size_is_explained(world):
    words = "of what buffers take in all banks"
    player = world.player("device 0 0 wormhole_b0 n150 0 0x80000 0x80000 8", "place 0 L1 0x8000 4096 0 512 8")
    assert words not in world.text("smi")  # 512 bytes in each of 8 banks
    player.play("place 0 L1 0x9000 2048 0 2048 8")
    assert "%: " + words in world.text("smi")
