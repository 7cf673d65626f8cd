# SPDX-License-Identifier: Apache-2.0
"""Who has a card open, for users who may not read other users' descriptors: ttmemd reports it.

Real processes with nodes open, cards and the driver's lists made of files.
"""

import subprocess

import pytest

from common import AS_NOBODY
from conftest import LIMIT
from machines import Machine
from world import check_schema

pytestmark = [pytest.mark.other_user, pytest.mark.needs_root]


class Cards(Machine):
    def show(self, *pids):
        """Real processes: /proc of this machine has nothing else."""
        for pid in pids:
            (self.proc / str(pid)).symlink_to(f"/proc/{pid}")


@pytest.fixture
def machine(ttmemd):
    machine = Cards(ttmemd.folder / "machine")
    for number in range(2):
        machine.card(number, "n150", "wormhole_b0", chip=0x40 + number, serial=7 + number)
    env = machine.env()
    ttmemd.env.update({name: env[name] for name in env if name.startswith("TTMEM_")})
    return machine


def untracked(ttmemd, machine, *numbers, before=()):
    player = ttmemd.player(TTMEM="0", before=before, opened=[machine.node(number) for number in numbers])
    machine.show(player.pid)
    return player.pid


def ended():
    """A pid that no process has any more."""
    process = subprocess.Popen(["true"])
    process.wait(timeout=LIMIT)
    return process.pid


def openers(document):
    """[(pid, comm, user, cards)] of the processes without tracking, and for each card how many openers are gone."""
    check_schema(document)
    rows = [(p["pid"], p["comm"], p["user_id"], [d["node"] for d in p["devices"]])
            for p in document["processes"] if p["untracked"]]
    return sorted(rows), [device["openers_ended"] for device in document["devices"]]


def test_a_process_that_has_the_number_now_is_not_shown(ttmemd, machine):
    """The opener has exited, another process has its pid, and a child of it holds the card."""
    stranger, heir = untracked(ttmemd, machine), untracked(ttmemd, machine, 1)
    machine.opened(1, ended(), stranger)
    ttmemd.start("--http", "127.0.0.1:0")
    wanted = ([(heir, "player", 0, [1])], [0, 2])
    assert openers(ttmemd.json("smi")) == wanted
    assert openers(ttmemd.json("smi", before=AS_NOBODY)) == wanted
    assert ttmemd.json("ps", before=AS_NOBODY)["processes"] == ttmemd.json("ps")["processes"]
    text = ttmemd.run("smi", before=AS_NOBODY).stdout
    assert f" {heir} " in text and f" {stranger} " not in text
    # Without a daemon another user has only the driver's word.
    ttmemd.stop()
    assert [row[0] for row in openers(ttmemd.json("smi", before=AS_NOBODY))[0]] == [stranger]


def test_of_a_process_that_cannot_be_read_the_daemon_tells_that_it_has_the_number_only(ttmemd, machine):
    """No opener has ended for all that the user can see."""
    stranger, heir = untracked(ttmemd, machine), untracked(ttmemd, machine, 1)
    machine.opened(1, stranger)
    ttmemd.start("--http", "127.0.0.1:0")
    wanted = ([(heir, "player", 0, [1])], [0, 1])
    assert openers(ttmemd.json("smi")) == wanted
    assert openers(ttmemd.json("smi", before=AS_NOBODY)) == wanted


def test_an_opener_of_several_cards_is_shown_once(ttmemd, machine):
    opener = untracked(ttmemd, machine, 0, 1)
    machine.opened(0, opener, opener)
    machine.opened(1, opener)
    ttmemd.start("--http", "127.0.0.1:0")
    wanted = ([(opener, "player", 0, [0, 1])], [0, 0])
    assert openers(ttmemd.json("smi")) == wanted
    assert openers(ttmemd.json("smi", before=AS_NOBODY)) == wanted


def test_an_opener_whose_files_do_not_show_the_node_is_kept(ttmemd, machine):
    """As root does, if no other process has it."""
    opener = untracked(ttmemd, machine)
    machine.opened(0, opener)
    ttmemd.start("--http", "127.0.0.1:0")
    wanted = ([(opener, "player", 0, [0])], [0, 0])
    assert openers(ttmemd.json("smi")) == wanted
    assert openers(ttmemd.json("smi", before=AS_NOBODY)) == wanted


def test_an_own_opener_whose_files_do_not_show_the_node_is_kept(ttmemd, machine):
    """The user cannot search all processes for another one that has it; the daemon has done so."""
    opener = untracked(ttmemd, machine, before=AS_NOBODY)
    untracked(ttmemd, machine)
    machine.opened(0, opener)
    ttmemd.start("--http", "127.0.0.1:0")
    rows, gone = openers(ttmemd.json("smi"))
    assert [row[0] for row in rows] == [opener] and gone == [0, 0]
    assert openers(ttmemd.json("smi", before=AS_NOBODY)) == (rows, gone)


def test_an_opener_that_is_hidden_from_the_user_is_shown(ttmemd, machine):
    """As where /proc is mounted with hidepid."""
    opener = untracked(ttmemd, machine, 1)
    machine.opened(1, opener, opener, ended())
    ttmemd.start("--http", "127.0.0.1:0")
    hidden = machine.folder / "hidden"
    hidden.mkdir()
    (hidden / "driver").symlink_to(machine.proc / "driver")
    env = {**ttmemd.env, "TTMEM_PROC_ROOT": str(hidden)}
    assert openers(ttmemd.json("smi")) == ([(opener, "player", 0, [1])], [0, 1])
    assert openers(ttmemd.json("smi", before=AS_NOBODY, env=env)) == ([(opener, "player", 0, [1])], [0, 1])


def test_pids_of_another_namespace_are_not_used(ttmemd, machine):
    """The daemon's numbers are those of other processes there."""
    stranger, heir = untracked(ttmemd, machine), untracked(ttmemd, machine, 1)
    machine.opened(1, ended(), stranger)
    ttmemd.start("--http", "127.0.0.1:0")
    inside = ("unshare", "--pid", "--fork", *AS_NOBODY)
    rows, _ = openers(ttmemd.json("smi", before=inside))
    assert [row[0] for row in rows] == [stranger] != [heir]
