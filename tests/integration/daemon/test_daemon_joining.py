# SPDX-License-Identifier: Apache-2.0
"""ttmemd puts memory on the card that a process has open, in everything that it tells and remembers."""

import json
import os
import re

import pytest

from machines import GIB, Machine
from nativesocket import AS_USER
from ttmemd import OldClient, get
from world import check_schema, wait_for


@pytest.fixture
def machine(ttmemd):
    machine = Machine(ttmemd.folder / "machine")
    for number in range(2):
        machine.card(number, "n150", "wormhole_b0", chip=0x40 + number, serial=7 + number)
    for name in ("TTMEM_SHM_DIR", "TTMEM_SYS_ROOT", "TTMEM_DEV_ROOT"):
        ttmemd.env[name] = machine.env()[name]
    ttmemd.start("--http", "127.0.0.1:0")
    return machine


def hidden(daemon, machine, size):
    """A process that sees only the second card, and calls it 0."""
    return daemon.player(f"alloc 0 DRAM 0x1000 {size} weights", opened=[machine.node(1)], TT_VISIBLE_DEVICES="1")


def used(daemon):
    rows = check_schema(get(daemon, "/api/v1/smi"))["devices"]
    return [row["memory"]["DRAM"]["used"] for row in rows]


def test_series_metrics_and_buffers_name_the_card(ttmemd, machine):
    player = hidden(ttmemd, machine, 3 * GIB)
    wait_for(lambda: used(ttmemd) == [0, 3 * GIB], "the card")
    lines = wait_for(lambda: get(ttmemd, f"/api/v1/series?pid={player.pid}")["series"], "its line")
    assert {(line["device"], line["uid"]) for line in lines} == {(1, "0x41")}
    _, text = ttmemd.fetch("/metrics")
    rows = re.findall(rf'ttmem_process_bytes\{{pid="{player.pid}".*device="(\d+)",uid="(\w+)"', text)
    assert rows == [("1", "0x41")]
    for name, names in (("1", ["weights"]), ("0x41", ["weights"]), ("0", [])):
        found = get(ttmemd, f"/api/v1/buffers?device={name}")["buffers"]
        assert [row["name"] for row in found] == names
        assert all(row["device_uid"] == "0x41" for row in found)


def test_what_a_process_left_was_on_its_card(ttmemd, machine):
    player = hidden(ttmemd, machine, GIB)
    wait_for(lambda: used(ttmemd) == [0, GIB], "the card")
    player.kill()
    (leak,) = wait_for(lambda: get(ttmemd, "/api/v1/leaks")["processes"], "the report")
    assert [row["device_uid"] for row in leak["buffers"]] == ["0x41"]


def test_an_old_client_is_on_the_card_that_it_has_open(ttmemd, machine):
    """The client is this process."""
    node = os.open(machine.node(1), os.O_RDONLY)
    client = OldClient(ttmemd.legacy)
    try:
        client.alloc(0, 0, 0x1000, GIB)
        wait_for(lambda: used(ttmemd) == [0, GIB], "the card")
        assert client.query(0)[0] == GIB  # old clients go by their own numbers
    finally:
        client.close()
        os.close(node)


def test_memory_from_before_a_removal_is_of_the_card_that_is_back(ttmemd, machine):
    """The process gave only a number, and has a node that was removed: no card is unknown."""
    player = hidden(ttmemd, machine, GIB)
    wait_for(lambda: used(ttmemd) == [0, GIB], "the card")
    machine.remove(1)

    def rows():
        return [(row["uid"], row["state"]) for row in get(ttmemd, "/api/v1/smi")["devices"]]

    def stale():
        _, text = ttmemd.fetch("/metrics")
        return dict(re.findall(r'ttmem_device_stale_holders\{device="\d+",uid="(\w*)"\} (\d+)', text))

    wait_for(lambda: rows() == [("0x40", "present"), ("0x41", "gone")], "the card to be gone")
    assert stale() == {"0x40": "0", "0x41": "1"}
    machine.card(1, "n150", "wormhole_b0", chip=0x41, serial=8)
    wait_for(lambda: rows() == [("0x40", "present"), ("0x41", "present")], "the card to be back")
    assert stale() == {"0x40": "0", "0x41": "1"}
    (process,) = get(ttmemd, "/api/v1/ps")["processes"]
    assert process["pid"] == player.pid
    assert [(d["uid"], d["stale_after_reset"]) for d in process["devices"]] == [("0x41", True)]
    assert used(ttmemd) == [0, 0]


@pytest.mark.needs_root
def test_a_process_in_a_pid_namespace_is_on_the_card_that_it_has_open(ttmemd, machine):
    inside = ["unshare", "--pid", "--fork", "--kill-child"]
    ttmemd.player("alloc 0 DRAM 0x1000 4096", before=inside, opened=[machine.node(1)], TT_VISIBLE_DEVICES="1")
    wait_for(lambda: used(ttmemd) == [0, 4096], "the card")
    (process,) = get(ttmemd, "/api/v1/ps")["processes"]
    assert process["ns_pid"] == 1 and process["devices"][0]["joined"] == "open"


@pytest.mark.needs_root
def test_other_users_processes_are_joined_as_the_daemon_has_found(ttmemd, machine):
    """A user may not read their descriptors; the command says what the daemon says, and why."""
    theirs = hidden(ttmemd, machine, GIB)
    nowhere = ttmemd.player("alloc 0 DRAM 0x1000 4096")  # without any node
    wait_for(lambda: sorted(used(ttmemd)) == [0, 4096, GIB], "both")

    def joined(document):
        return {p["pid"]: [(d["uid"], d["joined"], d["node"]) for d in p["devices"]] for p in document["processes"]}

    expected = {theirs.pid: [("0x41", "open", 1)], nowhere.pid: [(None, "by_number", None)]}
    assert joined(get(ttmemd, "/api/v1/ps")) == expected
    for command in ("smi", "ps"):
        assert joined(ttmemd.json(command, before=AS_USER)) == expected, command
    rows = ttmemd.json("smi", before=AS_USER)["devices"]
    assert sorted((row["joined"], row["memory"]["DRAM"]["used"]) for row in rows if row["joined"]) == [
        ("by_number", 4096), ("open", GIB)]
    assert "o: told by the nodes" in ttmemd.run("smi", before=AS_USER).stdout
    findings = json.loads(ttmemd.run("doctor", "--json", before=AS_USER).stdout)["findings"]
    (unmatched,) = [finding for finding in findings if finding["id"] == "device-unmatched"]
    assert unmatched["pid"] == nowhere.pid and "no node open" in unmatched["what"]
