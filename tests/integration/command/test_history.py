# SPDX-License-Identifier: Apache-2.0
"""ttmem history: the life of one address, as the old buffer tracing guide shows it."""

import datetime
import re

from world import end_children

GUIDE = (
    "alloc 0 DRAM 0x18c6a00 524288",
    "free 0 DRAM 0x18c6a00",
    "alloc 0 DRAM 0x18c6a00 262144",
    "free 0 DRAM 0x18c6a00",
    "alloc 0 DRAM 0x18c6a00 131072",
)


def plain(text):
    """Without the times, which are different each time."""
    return re.sub(r" time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?=[ \n])", "", text)


def block(pid, last):
    return (
        "Buffer 0x18c6a00 on device 0:\n"
        "  History (allocs=3 frees=2):\n"
        f"    ALLOC size=524288 pid={pid} ref=1\n"
        f"    FREE size=524288 pid={pid} ref=0\n"
        f"    ALLOC size=262144 pid={pid} ref=1  ← Address reused!\n"
        f"    FREE size=262144 pid={pid} ref=0\n"
        f"    ALLOC size=131072 pid={pid} ref=1  ← {last}!\n"
    )


def test_history_prints_the_block_of_the_old_guide(world):
    player = world.player(*GUIDE)
    assert plain(world.text("history", "0x18c6a00")) == block(player.pid, "Still allocated")
    assert plain(world.text("history", str(0x18C6A00))) == block(player.pid, "Still allocated")
    assert world.text("history", "0x1") == "nothing is known of address 0x1\n"


def test_history_has_times_and_names(world):
    world.player("alloc 0 DRAM 0x1000 64 kv%201", "free 0 DRAM 0x1000")
    env = {**world.env, "TZ": "UTC"}
    (life,) = world.json("history", "0x1000")["buffers"]
    lines = world.text("history", "0x1000", env=env).splitlines()[2:]
    assert len(lines) == len(life["events"]) == 2
    for line, event in zip(lines, life["events"]):
        when, name = re.search(r' time=(\S+) name="([^"]*)"$', line).groups()
        told = datetime.datetime.fromisoformat(when).replace(tzinfo=datetime.timezone.utc).timestamp()
        # Every reading converts the time of the book anew.
        assert abs(told - event["time_ns"] / 1e9) < 0.001 and name == event["name"] == "kv 1"


def test_history_of_a_dead_process_is_printed(world):
    player = world.player(*GUIDE)
    holder = player.play("hold")
    world.show(holder)
    player.kill()
    result = world.run("history", "0x18c6a00")
    assert plain(result.stdout) == block(player.pid, "Leaked")
    end_children(holder)


def test_references_double_frees_and_size_changes(world):
    player = world.player(
        "alloc 2 L1 0x1000 64 cached", "alloc 2 L1 0x1000 64 cached", "free 2 L1 0x1000",
        "alloc 2 L1 0x1000 128", "free 2 L1 0x1000", "free 2 L1 0x1000",
    )
    pid = player.pid
    assert plain(world.text("history", "0x1000")) == (
        "Buffer 0x1000 on device 2:\n"
        "  History (allocs=3 frees=3):\n"
        f"    ALLOC size=64 pid={pid} ref=1 name=\"cached\"\n"
        f"    ALLOC size=64 pid={pid} ref=2 name=\"cached\"\n"
        f"    FREE size=64 pid={pid} ref=1 name=\"cached\"\n"
        f"    FREE size=64 pid={pid} ref=0 name=\"cached\"\n"
        f"    ALLOC size=128 pid={pid} ref=1  ← Size changed!\n"
        f"    FREE size=128 pid={pid} ref=0\n"
        f"    DOUBLE FREE size=128 pid={pid} ref=0  ← Already freed!\n"
    )
    (life,) = world.json("history", "0x1000")["buffers"]
    assert [event["op"] for event in life["events"]] == [
        "alloc", "ref", "unref", "free", "alloc", "free", "double_free",
    ]
    assert [event["size_change"] for event in life["events"]] == [
        False, False, False, True, True, False, False,
    ]
    assert life["live"] is False and life["complete"] is True
    assert life["events"][0]["name"] == "cached"


def test_history_keeps_processes_devices_and_types_apart(world):
    first = world.player("alloc 0 DRAM 0x1000 1", "alloc 0 L1 0x1000 2", "alloc 1 L1 0x1000 3")
    second = world.player("alloc 0 DRAM 0x1000 4")
    text = world.text("history", "0x1000")
    assert f"Buffer 0x1000 on device 0: DRAM of pid {first.pid} (player)\n" in text
    assert f"Buffer 0x1000 on device 0: L1 of pid {first.pid} (player)\n" in text
    assert f"Buffer 0x1000 on device 0: DRAM of pid {second.pid} (player)\n" in text
    assert "Buffer 0x1000 on device 1:\n" in text

    def found(*args):
        document = world.json("history", "0x1000", *args)
        return [life["events"][0]["size"] for life in document["buffers"]]

    assert sorted(found()) == [1, 2, 3, 4]
    assert found("--device", "1") == [3]
    assert found("--type", "DRAM") == [1, 4]
    assert found("--pid", second.pid) == [4]


def test_history_reaches_back_by_the_graveyard(world):
    # The smallest log holds 1024 events, the graveyard 4096 frees.
    player = world.player(
        "alloc 0 DRAM 0x1000 10 old", "free 0 DRAM 0x1000", "alloc 0 DRAM 0x2000 20 kept",
        "burst 0 1500", "free 0 DRAM 0x2000", "alloc 0 DRAM 0x1000 30 new",
        TTMEM_HISTORY="1024",
    )
    (first,) = world.json("history", "0x1000")["buffers"]
    assert first["complete"] is False and first["live"] is True
    assert [(e["op"], e["size"], e["name"], e["number"] is None) for e in first["events"]] == [
        ("alloc", 10, "old", True), ("free", 10, "old", True), ("alloc", 30, "new", False),
    ]
    assert first["events"][2]["reused"] is True
    (second,) = world.json("history", "0x2000")["buffers"]
    assert [(e["op"], e["number"] is None, e["thread"]) for e in second["events"]] == [
        ("alloc", True, player.pid), ("free", False, player.pid),
    ]


def test_history_is_exact_while_the_process_writes(world):
    player = world.player("alloc 0 DRAM 0x1000 10 old")
    player.process.stdin.write("burst 0 3000000\n")
    player.process.stdin.flush()
    for _ in range(5):
        document = world.json("history", "0x1000")
        assert [e["op"] for e in document["buffers"][0]["events"]] == ["alloc"]
        assert document["buffers"][0]["live"] is True
