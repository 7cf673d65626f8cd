# SPDX-License-Identifier: Apache-2.0
"""Two processes at the same place of one device: each overwrites what the other stored."""

import json
import os

import pytest

from common import NOBODY
from machines import GIB, MIB, Machine
from world import check_schema, wait_for

CARD = f"0x1111 wormhole_b0 n150 0 {12 * GIB} {90 * MIB} 8"


def get(daemon, path):
    status, body = daemon.fetch(path, token=True)
    assert status == 200, body
    return check_schema(json.loads(body))


def overlaps(daemon):
    return get(daemon, "/api/v1/incidents?kind=overlap")["incidents"]


def notes(daemon):
    return [note for note in get(daemon, "/api/v1/smi")["notes"] if "overlapping" in note]


def wait_for_count(daemon, count):
    row = f'ttmem_incidents_total{{kind="overlap"}} {count}\n'
    wait_for(lambda: row in daemon.fetch("/metrics")[1], "the counter")


@pytest.fixture
def served(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    return ttmemd


def test_an_overlap_is_an_incident_of_the_younger_buffer_and_a_note(served):
    older = served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096 weights")
    younger = served.player(f"device 5 {CARD}", "alloc 5 DRAM 0x1000 8192 cache")
    (row,) = wait_for(lambda: overlaps(served), "the incident")
    assert row["pid"] == younger.pid and row["device"] == 5 and row["device_uid"] == "0x1111"
    assert row["type"] == "DRAM" and row["address"] == "0x1000" and row["size"] == 8192 and row["count"] == 1
    assert row["first"]["name"] == "weights" and row["second"]["name"] == "cache"
    assert [(h["pid"], h["used"]) for h in row["holders"]] == [(older.pid, 4096), (younger.pid, 8192)]
    (note,) = wait_for(lambda: notes(served), "the note")
    assert note == f"device 0: pid {older.pid} and pid {younger.pid} hold overlapping memory"
    line = f"overlap: pid {younger.pid} (player), device 5, DRAM, address 0x1000"
    wait_for(lambda: line in served.text(), "the notice")
    wait_for(lambda: f"overlaps with pid {older.pid} (player)" in served.text(), "with whom")
    wait_for_count(served, 1)
    text = served.run("incidents").stdout
    assert f"overlap: pid {younger.pid}" in text and f"held by pid {older.pid} (player): 4.0 KiB of DRAM" in text
    older.kill()
    wait_for(lambda: not notes(served), "the note to go")
    assert len(overlaps(served)) == 1


def test_overlaps_are_found_on_a_card_that_no_process_calls_by_its_number(ttmemd):
    machine = Machine(ttmemd.folder / "machine")
    machine.card(2, "n150", "wormhole_b0", chip=0x1111)
    ttmemd.env["TTMEM_SYS_ROOT"] = str(machine.sys)
    ttmemd.start("--http", "127.0.0.1:0")
    pids = {ttmemd.player(f"device {n} {CARD}", f"alloc {n} DRAM 0x1000 64").pid for n in range(2)}
    (row,) = wait_for(lambda: overlaps(ttmemd), "the incident")
    assert {h["pid"] for h in row["holders"]} == pids
    assert wait_for(lambda: notes(ttmemd), "the note")[0].startswith("device 2: ")


@pytest.mark.parametrize("stacks", ["off", "auto"])
def test_a_pair_of_processes_is_reported_once(served, stacks):
    """However often they allocate: a third one is found in the same searches."""
    how = {"TTMEM_STACKS": stacks}
    first = served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096 a", **how)
    second = served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096 b", **how)
    wait_for(lambda: overlaps(served), "the incident")
    for address in ("0x9000", "0xa000"):
        first.play(f"alloc 0 DRAM {address} 4096 c")
        second.play(f"alloc 0 DRAM {address} 4096 d")
    third = served.player(f"device 0 {CARD}", "alloc 0 DRAM 0xa000 64 e", **how)
    wait_for(lambda: len(notes(served)) == 3, "all pairs")
    wait_for(lambda: sum(row["count"] for row in overlaps(served)) >= 3, "their incidents")
    assert sum(row["count"] for row in overlaps(served)) == 3
    # By stacks all are of one call site, and the newest stands for them; an incident that came before the names of
    # its stack has a row of its own.
    pids = {row["pid"] for row in overlaps(served)}
    assert pids == {second.pid, third.pid} or (stacks == "auto" and pids == {third.pid})
    wait_for_count(served, 3)


def test_what_is_shared_on_purpose_or_elsewhere_is_no_overlap(served):
    served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096", "alloc 0 L1 0x100 4096")
    served.player(f"device 0 {CARD}", "alias 0 0x1000 4096", "alloc 0 CB 0x100 4096")
    served.player("device 0 0x2222 wormhole_b0 n150 0 1 1", "alloc 0 DRAM 0x1000 4096")
    served.player("alloc 0 DRAM 0x1000 4096")  # nobody knows which chip that is
    last = [served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x800000 64") for _ in range(2)]
    wait_for(lambda: overlaps(served), "those who are found in the same search")
    (row,) = overlaps(served)
    assert {h["pid"] for h in row["holders"]} == {player.pid for player in last}


@pytest.mark.other_user
@pytest.mark.parametrize("where", ["another user", "a container"])
def test_the_names_of_another_user_are_not_in_the_incident(served, where):
    if os.getuid() != 0:
        pytest.skip("needs to become another user")
    contained = where == "a container"
    served.player(f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096 secret",
                  before=("unshare", "--pid", "--fork", "--kill-child") if contained else ())
    served.player(f"setuid {0 if contained else NOBODY}", f"device 0 {CARD}", "alloc 0 DRAM 0x1000 4096 own")
    (row,) = wait_for(lambda: overlaps(served), "the incident")
    assert row["second"]["name"] == "own" and row["first"]["size"] == 4096
    assert row["first"]["name"] is None and row["first"]["stack"] == []


def test_commands_that_list_buffers_note_it_without_a_daemon(world):
    older = world.player(f"device 0 {CARD}", "alloc 0 L1 0x1000 4096")
    younger = world.player(f"device 0 {CARD}", "alloc 0 L1 0x1000 4096")
    note = f"device 0: pid {older.pid} and pid {younger.pid} hold overlapping memory"
    assert note in world.json("buffers")["notes"] and note in world.json("map")["notes"]
    assert note in world.run("buffers").stdout + world.run("buffers").stderr
    younger.play("free 0 L1 0x1000")
    assert note not in world.json("buffers")["notes"]
