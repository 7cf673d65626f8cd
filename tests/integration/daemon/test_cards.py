# SPDX-License-Identifier: Apache-2.0
"""What the daemon remembers of cards that are reset, removed, or stop answering."""

import json
import re
import shutil

import pytest

import nativesocket
from machines import GIB, n150_pair
from world import check_schema, wait_for

pytestmark = pytest.mark.needs_root


@pytest.fixture
def machine(ttmemd):
    machine = n150_pair(ttmemd.folder / "machine")
    ttmemd.start("--http", "127.0.0.1:0", env=machine.env())
    return machine


def smi(ttmemd):
    _, text = ttmemd.fetch("/api/v1/smi")
    return check_schema(json.loads(text))


def identity(device):
    return [device[key] for key in ("uid", "serial", "arch", "card", "bus", "firmware")]


def first(document):
    """The first card, and the part of the process that has it."""
    device = document["devices"][0]
    (process,) = [process for process in document["processes"] if process["pid"] == 600]
    assert len(document["devices"]) == 2 and document["devices"][1]["state"] == "present"
    return device, process["devices"][0]


def test_a_card_keeps_its_identity_in_a_reset(ttmemd, machine):
    before, part = first(smi(ttmemd))
    assert before["state"] == "present" and before["memory"]["DRAM"]["used"] == GIB
    assert not part["stale_after_reset"] and None not in identity(before)
    saved = machine.reset(0)
    during, part = first(smi(ttmemd))
    assert during["state"] == "in_reset" and identity(during) == identity(before)
    assert during["present"] and part["stale_after_reset"]
    machine.answer(saved)
    after, part = first(smi(ttmemd))
    assert after["state"] == "present" and identity(after) == identity(before)
    assert part["stale_after_reset"] and part["memory"]["DRAM"]["used"] == GIB
    assert after["memory"]["DRAM"]["used"] == 0


def test_a_removed_card_is_gone_and_its_memory_not_on_the_next(ttmemd, machine):
    before, _ = first(smi(ttmemd))
    machine.remove(0)
    document = smi(ttmemd)
    gone, part = first(document)
    assert gone["state"] == "gone" and not gone["present"] and gone["number"] is None
    assert identity(gone) == identity(before) and part["stale_after_reset"]
    assert document["totals"]["bytes"] == 2 * GIB
    assert "device 0 is gone" in document["notes"]
    machine.card(0, "n150", "wormhole_b0", chip=int(before["uid"], 16), serial=int(before["serial"], 16))
    machine.opened(0)
    back, part = first(smi(ttmemd))
    assert back["state"] == "present" and back["memory"]["DRAM"]["used"] == 0
    assert part["stale_after_reset"]


def test_a_heartbeat_that_stands_still_is_no_answer(ttmemd, machine):
    path = machine.class_folder(1) / "tt_heartbeat"
    machine.write(path, 1)
    wait_for(lambda: smi(ttmemd)["devices"][1]["state"] == "not_answering", "the heartbeat to be missed")
    for columns, shown in (("80", r"not answering +45"), ("120", r"not answering .*\n.*45[^\n]* 31 W")):
        text = ttmemd.run("smi", env={**machine.env(), "COLUMNS": columns}).stdout
        assert re.search(shown, text), text  # what can be read is shown all the same
    machine.write(path, 2)
    assert smi(ttmemd)["devices"][1]["state"] == "present"


@pytest.mark.parametrize("name, before, after", [("tt_heartbeat", 90000, 12), ("tt_therm_trip_count", 0, 1)])
def test_a_reset_between_two_readings_is_seen(ttmemd, machine, name, before, after):
    """Its files never were without data when they were read: the firmware's counters tell."""
    path = machine.class_folder(0) / name
    machine.write(path, before)
    device, part = first(smi(ttmemd))
    assert device["memory"]["DRAM"]["used"] == GIB and not part["stale_after_reset"]
    machine.write(path, after)
    device, part = first(smi(ttmemd))
    assert device["state"] == "present" and device["memory"]["DRAM"]["used"] == 0
    assert part["stale_after_reset"] and part["memory"]["DRAM"]["used"] == GIB
    document = ttmemd.json("smi", env=machine.env())
    assert first(document)[1]["stale_after_reset"]
    text = ttmemd.run("smi", env=machine.env()).stdout
    assert "stale after reset" in text


def test_a_card_that_was_removed_and_is_back_between_two_readings_is_another(ttmemd, machine):
    """As when its driver was reloaded: the driver has made a new folder for it."""
    assert not first(smi(ttmemd))[1]["stale_after_reset"]
    folder = machine.class_folder(0)
    shutil.copytree(folder, machine.folder / "new", symlinks=True)
    folder.rename(machine.folder / "old")
    (machine.folder / "new").rename(folder)
    device, part = first(smi(ttmemd))
    assert device["state"] == "present" and device["memory"]["DRAM"]["used"] == 0
    assert part["stale_after_reset"]


def test_a_command_asks_the_daemon_what_was_before(ttmemd, machine):
    """It looks only once, but the daemon has seen the card before."""
    before, _ = first(smi(ttmemd))
    saved = machine.reset(0)
    smi(ttmemd)
    document = ttmemd.json("smi", env=machine.env())
    during, part = first(document)
    assert during["state"] == "in_reset" and identity(during) == identity(before)
    assert part["stale_after_reset"] and document["totals"]["bytes"] == 2 * GIB
    machine.answer(saved)
    after, part = first(ttmemd.json("smi", env=machine.env()))
    assert after["state"] == "present" and part["stale_after_reset"]
    machine.remove(0)
    gone, _ = first(ttmemd.json("smi", env=machine.env()))
    assert gone["state"] == "gone" and identity(gone) == identity(before)
    ttmemd.stop()
    alone = ttmemd.json("smi", env=machine.env())["devices"][0]
    assert alone["state"] == "gone" and alone["card"] is None


def test_a_command_is_told_of_a_missed_heartbeat(ttmemd, machine):
    path = machine.class_folder(1) / "tt_heartbeat"
    machine.write(path, 1)
    wait_for(lambda: smi(ttmemd)["devices"][1]["state"] == "not_answering", "the heartbeat to be missed")
    assert ttmemd.json("smi", env=machine.env())["devices"][1]["state"] == "not_answering"
    machine.write(path, 2)
    assert ttmemd.json("smi", env=machine.env())["devices"][1]["state"] == "present"


def test_what_is_remembered_is_a_document(ttmemd, machine):
    smi(ttmemd)
    machine.reset(0)
    smi(ttmemd)
    document = check_schema(nativesocket.document(ttmemd, "/api/v1/cards"))
    assert [card["state"] for card in document["cards"]] == ["in_reset", "present"]
    (stale,) = document["stale"]
    assert (stale["pid"], stale["device"], stale["bus"]) == (600, 0, "0000:01:00.0")
    assert ttmemd.fetch("/api/v1/cards")[0] == 403
