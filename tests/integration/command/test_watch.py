# SPDX-License-Identifier: Apache-2.0
"""ttmem watch: every event once and in order, or counted as missed."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

from common import LIMIT, wait_for
from world import check_schema


def follow(watch, count):
    """The next lines of a watch."""
    return [watch.stdout.readline() for _ in range(count)]


def stop(watch):
    watch.send_signal(signal.SIGINT)
    rest = watch.stdout.read()
    assert watch.wait(timeout=LIMIT) == 0
    return rest


def test_watch_prints_the_lines_of_the_old_server(world):
    watch = world.watch("--format", "seed")
    player = world.player(
        "alloc 0 L1 0x1a0000 524288",
        "alloc 0 L1 0x1a0000 524288",
        "free 0 L1 0x1a0000",
        "free 0 L1 0x1a0000",
        "free 0 DRAM 0x77",
        "alloc 1 CB 0x10 1048576",
        "alloc 1 CB 0x20 524288",
        "free 1 CB 0x10",
        "kernel 1 0x30 51200 0",
        "kernel 1 0x40 51200 2",
        "free 1 KERNEL 0x30",
        "alloc 0 TRACE 0x50 7",
        "alloc 0 TRACE 0x50 9",
        "hooked 0 DRAM 5",
        "failed 0 DRAM 5 5",
    )
    pid = player.pid
    lines = follow(watch, 14)
    # Between devices there is no order but time.
    assert [line for line in lines if "device 0" in line] == [
        f"✓ [PID {pid}] Allocated 524288 bytes of L1 on device 0 (buffer_id=0x1a0000)\n",
        f"✓ [PID {pid}] Allocated 524288 bytes of L1 on device 0 (buffer_id=0x1a0000, ref_count=2)\n",
        f"✗ [PID {pid}] Freed buffer 0x1a0000 on device 0 (524288 bytes, ref_count=1 remaining)\n",
        f"✗ [PID {pid}] Freed buffer 0x1a0000 on device 0 (524288 bytes, FINAL)\n",
        f"⚠ [PID {pid}] Deallocation for unknown buffer 0x77 on device 0 "
        "(allocated before tracking started)\n",
        f"✓ [PID {pid}] Allocated 7 bytes of TRACE on device 0 (buffer_id=0x50)\n",
        f"✗ [PID {pid}] Freed buffer 0x50 on device 0 (7 bytes, FINAL), allocated anew with another size\n",
        f"✓ [PID {pid}] Allocated 9 bytes of TRACE on device 0 (buffer_id=0x50)\n",
    ]
    assert [line for line in lines if "Device 1" in line] == [
        "✓ [CB_ALLOC] Device 1: +1 MB (Total: 1 MB)\n",
        "✓ [CB_ALLOC] Device 1: +0.5 MB (Total: 1.5 MB)\n",
        "✗ [CB_FREE] Device 1: -1 MB (Total: 0.5 MB)\n",
        "✓ [KERNEL_LOAD] Application kernel on Device 1: +0.0488281 MB (Total: 0.0488281 MB)\n",
        "✓ [KERNEL_LOAD] Dispatch kernel on Device 1: +0.0488281 MB (Total: 0.0976562 MB)\n",
        "✗ [KERNEL_UNLOAD] Application kernel on Device 1: -0.0488281 MB (Total: 0.0488281 MB)\n",
    ]
    player.kill()
    assert follow(watch, 6) == [
        "\n",
        "⚠️  Detected dead processes, cleaning up orphaned buffers...\n",
        f"   PID {pid} is dead, removing its buffers...\n",
        f"   ✓ Removed 1 buffers (8.58307e-06 MB) from PID {pid}\n",
        f"   ✓ Removed 1 CBs (0.5 MB) from PID {pid}\n",
        f"   ✓ Removed 1 kernels (0.0488281 MB) from PID {pid}\n",
    ]
    assert stop(watch) == ""
    assert watch.stderr.read() == ""


def test_watch_prints_decimal_ids_and_filters_types(world):
    watch = world.watch("--format", "seed", "--ids", "decimal", "--type", "L1")
    player = world.player(
        "alloc 2 DRAM 25718784 1", "alloc 2 L1 25718784 98304", "free 2 L1 25718784"
    )
    assert follow(watch, 2) == [
        f"✓ [PID {player.pid}] Allocated 98304 bytes of L1 on device 2 (buffer_id=25718784)\n",
        f"✗ [PID {player.pid}] Freed buffer 25718784 on device 2 (98304 bytes, FINAL)\n",
    ]
    assert stop(watch) == ""


def test_watch_prints_json_lines(world):
    watch = world.watch("--format", "json")
    player = world.player(
        "device 0 0xabc wormhole_b0 n150 0 0 0", "push p", "alloc 0 DRAM 0x1000 64 na%ffme",
        "free 0 DRAM 0x1000", "free 0 DRAM 0x1000",
    )
    start, alloc, free, double = [check_schema(json.loads(line)) for line in follow(watch, 4)]
    assert start["op"] == "start" and start["pid"] == player.pid
    time_ns = alloc.pop("time_ns")
    assert start["time_ns"] - 5e9 < time_ns
    assert alloc == {
        "schema": "ttmem.watch/1", "op": "alloc", "pid": player.pid, "comm": "player", "device": 0,
        "device_uid": "0xabc", "number": 1, "type": "DRAM", "address": "0x1000", "size": 64,
        "refs": 1, "thread": player.pid, "name": "na\ufffdme", "phase": "p", "flags": [],
        "size_change": False, "stack": [], "site": None, "notes": [],
    }
    assert free["op"] == "free" and free["refs"] == 0 and free["number"] == 2
    assert double["op"] == "double_free"
    player.end()
    end = check_schema(json.loads(watch.stdout.readline()))
    assert end["op"] == "end" and end["buffers"] == end["bytes"] == 0


def test_watch_prints_text(world):
    watch = world.watch()
    player = world.player("alloc 0 DRAM 0x1000 2048 weights")
    started, event = follow(watch, 2)
    assert started.endswith(f"player[{player.pid}] is being watched\n")
    assert event.endswith(f'player[{player.pid}] device 0: alloc DRAM 0x1000, 2.0 KiB, "weights"\n')
    player.kill()
    assert watch.stdout.readline().endswith("has ended and left 1 buffer, 2.0 KiB\n")


def test_watch_does_not_repeat_earlier_events(world):
    player = world.player("alloc 1 CB 0x10 1048576")
    watch = world.watch("--format", "seed")
    # The totals know it nevertheless.
    player.play("alloc 1 CB 0x20 1048576")
    lines = follow(watch, 1)
    assert lines == ["✓ [CB_ALLOC] Device 1: +1 MB (Total: 2 MB)\n"]


def test_watch_counts_every_event_of_a_flood(world):
    watch = world.watch("--format", "json")
    player = world.player()
    player.process.stdin.write("burst 0 2000000\n")
    player.process.stdin.flush()
    seen = missed = 0
    last = 0
    while last < 4000000:
        line = check_schema_quickly(watch.stdout.readline())
        if line["op"] == "start":
            continue
        if line["op"] == "missed":
            missed += line["count"]
            assert line["number"] == last + line["count"]
        else:
            seen += 1
            assert line["number"] == last + 1
        last = line["number"]
    assert seen + missed == last == 4000000
    assert player.process.stdout.readline() == "ok\n"


def check_schema_quickly(line):
    document = json.loads(line)
    assert document["schema"] == "ttmem.watch/1"
    return document


def test_watch_follows_an_application_that_closes_all_descriptors(world):
    watch = world.watch()
    player = world.player("alloc 0 DRAM 0x1000 1 first")
    follow(watch, 2)
    player.play("closefds", "alloc 0 DRAM 0x2000 2 second")
    assert '"second"' in watch.stdout.readline()
    # Some scans later it is still followed.
    time.sleep(1)
    player.play("alloc 0 DRAM 0x3000 3 third")
    assert '"third"' in watch.stdout.readline()
    assert stop(watch) == ""


def test_watch_ends_when_its_pipe_is_closed(world):
    watch = world.watch()
    player = world.player("alloc 0 DRAM 0x1000 1 first")
    follow(watch, 2)
    watch.stdout.close()
    player.play("alloc 0 DRAM 0x2000 2 second")
    assert watch.wait(timeout=LIMIT) == 0
    assert watch.stderr.read() == ""


def test_nothing_is_left_out_once_a_process_is_announced(world):
    """A terminal that is stopped (Ctrl-S) holds the watch in the middle of its announcement."""
    player = world.player("alloc 0 DRAM 0x1000 10")
    terminal, end = pty.openpty()
    os.write(terminal, b"\x13")
    # The kernel stops it a little later: until then it takes output.
    wait_for(lambda: not select.select([], [end], [], 0)[1], "the terminal to stop")
    watch = subprocess.Popen([world.program, "watch"], stdin=end, stdout=end, stderr=end, env=world.env)
    os.close(end)
    # It waits in write() (1, on aarch64 64) to its standard output.
    wait_for(lambda: Path(f"/proc/{watch.pid}/syscall").read_text().startswith(("1 0x1 ", "64 0x1 ")))
    player.play("alloc 0 DRAM 0x2000 10")
    os.write(terminal, b"\x11")
    text = bytearray()
    while b"0x2000" not in text:
        assert select.select([terminal], [], [], LIMIT)[0], "the event is not shown"
        text += os.read(terminal, 4096)
    os.write(terminal, b"q")
    assert watch.wait(timeout=LIMIT) == 0
    os.close(terminal)
    assert b"is being watched" in text and b"0x1000" not in text
