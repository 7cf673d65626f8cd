# SPDX-License-Identifier: Apache-2.0
"""Clients of the old protocol and the real daemon: they are shown like native ones, and nothing is
lost whatever they do or whatever happens to them."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ttmemd import OldClient

from conftest import LIMIT
from world import wait_for

pytestmark = pytest.mark.legacy

OURS = 901  # a device that no other process of the machine has

# A process of its own: allocates with name and stack over 648 bytes, then does as it is told.
CLIENT = r"""
import os, socket, struct, sys, time
path, count = sys.argv[1], int(sys.argv[2])
def message(kind, device, size, type, address, name=b"", stack=b""):
    head = struct.pack("<B3xiQB3xiQQ", kind, device, size, type, os.getpid(), address, 1)
    return (head.ljust(72, b"\0") + name.ljust(64, b"\0") + stack.ljust(512, b"\0"))
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s
s = connect()
for i in range(count):
    s.sendall(message(1, 0, 1000 + i, 1, 0x1000 * (i + 1), b"layer_%d" % i,
                      b"model.py:12:forward -> allocation_client.py:140:allocate"))
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "anew":
        s.close()
        s = connect()
    elif words[0] == "free":
        s.sendall(message(2, 0, 0, 0, int(words[1], 0)))
    elif words[0] == "half":
        s.sendall(message(1, 0, 1, 1, 0xdead000)[:300])
    print("ok", flush=True)
"""


class Process:
    def __init__(self, ttmemd, count):
        self.process = ttmemd.adopt(
            subprocess.Popen(
                [sys.executable, "-c", CLIENT, str(ttmemd.legacy), str(count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def kill(self):
        self.process.kill()
        self.process.wait()


def buffers_of(ttmemd, pid):
    return sorted(
        (b["device"], b["type"], b["address"], b["size"], b["refs"], b["name"])
        for b in ttmemd.json("buffers", "--pid", pid)["buffers"]
    )


def expected(count):
    return sorted(
        (0, "L1", hex(0x1000 * (i + 1)), 1000 + i, 1, f"layer_{i}") for i in range(count)
    )


def wait_for_buffers(ttmemd, pid, wanted):
    wait_for(lambda: buffers_of(ttmemd, pid) == wanted, "its buffers")


def test_an_old_client_is_shown_like_any_other_process(ttmemd):
    ttmemd.start()
    client = Process(ttmemd, 3)
    wait_for_buffers(ttmemd, client.pid, expected(3))
    process = [p for p in ttmemd.json("ps")["processes"] if p["pid"] == client.pid][0]
    assert process["source"] == "socket" and process["alive"]
    client.kill()
    leak = ttmemd.wait_for_leak(client.pid)
    assert leak["bytes"] == 3003 and {b["name"] for b in leak["buffers"]} == {
        "layer_0",
        "layer_1",
        "layer_2",
    }
    said = f"⚠️  Process {client.pid} exited but left 3 buffers allocated:"
    wait_for(lambda: said in ttmemd.text(), "the leak report in the log")


def test_a_restart_of_the_daemon_keeps_old_clients(ttmemd):
    ttmemd.start()
    lives, dies = Process(ttmemd, 5), Process(ttmemd, 2)
    wait_for_buffers(ttmemd, lives.pid, expected(5))
    wait_for_buffers(ttmemd, dies.pid, expected(2))
    for _ in range(3):
        ttmemd.kill()
        if dies.process.poll() is None:
            dies.kill()
        ttmemd.start()
        assert buffers_of(ttmemd, lives.pid) == expected(5)
    assert ttmemd.wait_for_leak(dies.pid)["bytes"] == 2001
    lives.tell("anew")
    lives.tell("free 0x1000")
    wait_for_buffers(ttmemd, lives.pid, expected(5)[1:])
    assert {i["kind"] for i in ttmemd.json("incidents")["incidents"]} <= {"leak"}
    lives.kill()
    assert ttmemd.wait_for_leak(lives.pid)["bytes"] == 5010 - 1000


def test_an_old_client_that_dies_in_mid_message_is_a_leak(ttmemd):
    ttmemd.start()
    client = Process(ttmemd, 4)
    client.tell("half")
    client.kill()
    assert ttmemd.wait_for_leak(client.pid)["bytes"] == 4006


@pytest.mark.parametrize("ids", ["hex", "decimal"])
def test_log_events_prints_the_old_lines(ttmemd, ids):
    ttmemd.start("--log-events", "--ids", ids)
    client = OldClient(ttmemd.legacy)
    for _ in range(2):
        client.alloc(2, 1, 25718784, 524288)
    for _ in range(3):
        client.free(2, 25718784)
    assert client.query(2)[1] == 0
    number = "25718784" if ids == "decimal" else "0x1887000"
    pid = os.getpid()
    lines = (
        f"✓ [PID {pid}] Allocated 524288 bytes of L1 on device 2 (buffer_id={number})\n"
        f"✓ [PID {pid}] Allocated 524288 bytes of L1 on device 2 (buffer_id={number},"
        " ref_count=2)\n"
        f"✗ [PID {pid}] Freed buffer {number} on device 2 (524288 bytes,"
        " ref_count=1 remaining)\n"
        f"✗ [PID {pid}] Freed buffer {number} on device 2 (524288 bytes, FINAL)\n"
        f"⚠ [PID {pid}] Deallocation for unknown buffer {number} on device 2"
        " (allocated before tracking started)\n"
    )
    wait_for(lambda: lines in ttmemd.text(), "the lines")
    wait_for(lambda: "🚀 Allocation Server started\n" in ttmemd.text(), "the banner")
    # A native process is printed too.
    player = ttmemd.player("alloc 3 DRAM 0x1000 777")
    line = f"✓ [PID {player.pid}] Allocated 777 bytes of DRAM on device 3"
    wait_for(lambda: line in ttmemd.text(), "the line of a native process")
    client.close()


def test_quiet_prints_only_what_is_asked_for(ttmemd):
    ttmemd.start("--log-events", "-q")
    client = OldClient(ttmemd.legacy)
    client.alloc(OURS, 0, 0x1000, 3 << 20)
    client.socket.sendall(client.message(client.DUMP, pid=0))
    assert client.query(OURS)[0] == 3 << 20
    wait_for(lambda: "📋 DUMP_REMAINING complete.\n" in ttmemd.text(), "the dump")
    ttmemd.process.send_signal(signal.SIGUSR1)
    summary = f"Device {OURS}:\n  DRAM: 1 buffers, 3.00 MB total\n"
    wait_for(lambda: summary in ttmemd.text(), "the summary")
    wait_for(lambda: re.search(r"Grand total: \d+ buffers, \d+\.\d\d MB\n", ttmemd.text()), "its last line")
    assert "Allocated" not in ttmemd.text() and "🚀" not in ttmemd.text()
    assert re.search(r"🔹 ID: 0x1000 \| Size: 3072 KB \| PID: \d+ \| Refs: 1 \| Age: \d+s\n",
                     ttmemd.text())  # fmt: skip
    client.close()


def test_an_old_client_in_a_tight_loop_is_counted_exactly(ttmemd):
    ttmemd.start()
    program = ttmemd.build / "tests" / "programs" / "old-client"
    for size in (72, 112, 128, 144, 648):
        result = subprocess.run(
            [str(program), str(ttmemd.legacy), str(size), "20000"],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        assert '"messages":20000' in result.stdout
    # A client that sends a byte now and then, or never reads, does not delay others.
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(str(ttmemd.legacy))
    slow.sendall(b"\1")
    client = OldClient(ttmemd.legacy)
    assert client.query(OURS) == (0, 0, 0, 0)
    slow.close()
    client.close()


def nice_of(stat):
    return int(stat.read_text().rpartition(")")[2].split()[16])


def test_only_the_loop_thread_has_a_higher_priority(ttmemd):
    """Old clients wait for it; but not for the other threads, nor for what it starts."""
    may = subprocess.run(["nice", "-n", "-10", "nice"], capture_output=True, text=True, timeout=LIMIT)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    expected = ours or int(may.stdout)  # where it is not allowed, or we were given another one: as we are
    told = ttmemd.folder / "told"
    ttmemd.start("--on-incident", f"nice >{told}.new; mv {told}.new {told}")
    threads = Path(f"/proc/{ttmemd.process.pid}/task")
    loop = threads / str(ttmemd.process.pid) / "stat"
    wait_for(lambda: nice_of(loop) == expected, "the loop's priority")
    others = [task for task in threads.iterdir() if task.name != str(ttmemd.process.pid)]
    assert others and all(nice_of(task / "stat") == ours for task in others)
    player = ttmemd.player(f"alloc {OURS} DRAM 0x1000 4096")
    player.kill()
    wait_for(told.exists, "the command of an incident")
    assert int(told.read_text()) == ours
    wait_for(lambda: nice_of(loop) == expected, "the loop's priority again")


def test_log_events_reports_the_death_of_a_native_process(ttmemd):
    ttmemd.start("--log-events")
    player = ttmemd.player("alloc 901 DRAM 0x1000 1048576", "kernel 901 0x2000 524288 0")
    wait_for(lambda: f"[PID {player.pid}]" in ttmemd.text(), "its first line")
    player.kill()
    wait_for(lambda: f"   PID {player.pid} is dead, removing its buffers..." in ttmemd.text(), "its end")
    last = f"   ✓ Removed 1 kernels (0.5 MB) from PID {player.pid}\n"
    wait_for(lambda: last in ttmemd.text(), "the last line")
    assert f"   ✓ Removed 1 buffers (1 MB) from PID {player.pid}\n" in ttmemd.text()
