# SPDX-License-Identifier: Apache-2.0
"""Time namespaces: start times in /proc are shifted by that of whoever reads them."""

import os
import time
from pathlib import Path

import pytest

from world import wait_for

SHIFTS = {
    "ahead": ("--boottime", "100000", "--monotonic", "7000"),
    "behind": ("--boottime", "-5", "--monotonic", "-3"),
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/timens_offsets").exists(), reason="needs root and time namespaces"
)


@pytest.fixture(params=sorted(SHIFTS))
def inside(request):
    return ("unshare", "--time", *SHIFTS[request.param], "--fork", "--kill-child")


def inner(pid):
    (child,) = wait_for(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), "the child")
    return int(child)


def process_of(document, pid):
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def is_right(process, born):
    """Living, and with times that are those of the machine."""
    assert process["alive"] and process["devices"][0]["memory"]["DRAM"]["used"] == 77, process
    started, last = (process[key] / 1e9 for key in ("start_ns", "last_activity_ns"))
    assert abs(started - born) < 10 and started - 1 < last < time.time() + 1, (process, born)


def check_all(daemon, pid, born):
    """By the daemon alone and by the command alone."""
    process = wait_for(lambda: process_of(daemon.json("smi", env=daemon.blind), pid), "the process")
    is_right(process, born)
    is_right(process_of(daemon.json("smi", env={"TTMEM_SOCKET": "none"}), pid), born)


@pytest.fixture
def daemon(ttmemd):
    blind = ttmemd.folder / "blind"
    blind.mkdir()
    ttmemd.blind = {"TTMEM_PROC_ROOT": str(blind)}
    return ttmemd


def test_a_process_in_a_time_namespace_is_alive(daemon, inside):
    daemon.start("--scan-interval", "1")
    born = time.time()
    player = daemon.player("alloc 0 DRAM 0x1000 77", before=inside)
    pid = inner(player.pid)
    check_all(daemon, pid, born)
    player.end()
    assert daemon.wait_for_leak(pid)["bytes"] == 77


def test_a_daemon_in_a_time_namespace_sees_the_living(daemon, inside):
    daemon.start("--scan-interval", "1", before=inside)
    born = time.time()
    player = daemon.player("alloc 0 DRAM 0x1000 77")
    check_all(daemon, player.pid, born)
    player.end()
    assert daemon.wait_for_leak(player.pid)["bytes"] == 77


def test_a_command_in_a_time_namespace_sees_the_living(daemon, inside):
    born = time.time()
    player = daemon.player("alloc 0 DRAM 0x1000 77")
    document = daemon.json("smi", before=inside)
    is_right(process_of(document, player.pid), born)
    daemon.start("--scan-interval", "1")
    wait_for(lambda: process_of(daemon.json("smi", env=daemon.blind), player.pid), "the process")
    found = [p for p in daemon.json("smi", before=inside)["processes"] if p["pid"] == player.pid]
    assert len(found) == 1
    is_right(found[0], born)
