# SPDX-License-Identifier: Apache-2.0
"""The order of the old server's lines: what a process did comes before how it ended and before what lists it."""

import re

import pytest
from ttmemd import OldClient

from world import wait_for

pytestmark = pytest.mark.legacy

PROGRAMS = 20


def places(text, pattern):
    return [found.start() for found in re.finditer(pattern, text, re.M)]


@pytest.mark.parametrize("option", ["--log-events", "--log-history"])
def test_the_end_of_a_process_comes_after_its_own_lines(ttmemd, option):
    """Programs that live for a moment, and leave something."""
    ttmemd.start(option)
    pids = []
    for i in range(PROGRAMS):
        player = ttmemd.player(f"alloc 0 L1 {0x1000 * (i + 1):#x} 64", f"alloc 1 DRAM {0x1000 * (i + 1):#x} 128")
        pids.append(player.pid)
        player.kill()
    for pid in pids:
        wait_for(lambda pid=pid: f"Process {pid} exited but left 2 buffers" in ttmemd.text(), f"the end of {pid}")
    text = ttmemd.text()
    for pid in pids:
        own = places(text, rf"^✓ \[PID {pid}\] Allocated")
        dead = places(text, rf"^   PID {pid} is dead, removing its buffers")
        left = places(text, rf"^⚠️  Process {pid} exited but left 2 buffers")
        assert len(own) == 2 and len(dead) == len(left) == 1
        assert max(own) < dead[0] < left[0], pid


def test_a_dump_lists_nothing_that_has_not_been_printed(ttmemd):
    ttmemd.start("--log-events")
    client = OldClient(ttmemd.legacy)
    for i in range(PROGRAMS):
        ttmemd.player(f"alloc 0 L1 {0x1000 * (i + 1):#x} 64")
        client.socket.sendall(client.message(client.DUMP))
        wait_for(lambda i=i: ttmemd.text().count("DUMP_REMAINING complete.") > i, "the dump")
    text = ttmemd.text()
    for i in range(PROGRAMS):
        listed = places(text, rf"ID: {0x1000 * (i + 1):#x} \|")
        (printed,) = places(text, rf"\(buffer_id={0x1000 * (i + 1):#x}\)")
        assert listed and printed < min(listed)
    client.close()


def test_events_of_the_last_moment_are_printed(ttmemd):
    ttmemd.start("--log-events")
    player = ttmemd.player("alloc 0 L1 0x1000 64")
    wait_for(lambda: "(buffer_id=0x1000)" in ttmemd.text(), "the first line")
    player.play("alloc 0 L1 0x2000 64", "free 0 L1 0x1000")
    assert ttmemd.stop() == 0
    text = ttmemd.text()
    lines = ["(buffer_id=0x2000)", "✗ [PID", "🛑 Allocation Server stopped"]
    found = [text.index(line) for line in lines]
    assert found == sorted(found)
