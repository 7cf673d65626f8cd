# SPDX-License-Identifier: Apache-2.0
"""Processes that are not tracked: what is not known of them is not shown as nothing."""

import json

import pytest

from machines import Machine, Region
from world import check_schema

GIB = 1 << 30


@pytest.fixture
def untracked(world, tmp_path):
    """A process of which only tt-metal's region tells: 1 GiB."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB))
    return player


def test_lists_of_buffers_name_processes_that_are_not_tracked(world, untracked):
    note = f"not tracked, so its buffers are not known: pid {untracked.pid} (player) with 1.0 GiB"
    for words in (["buffers"], ["buffers", "--by", "name"], ["growth", "--seconds", "1"]):
        document = json.loads(world.run(*words, "--json").stdout)
        assert note in check_schema(document)["notes"], words
        assert f"note: {note}" in world.run(*words).stderr, words
    tracked = world.player("alloc 0 DRAM 0x1000 64")
    assert world.json("buffers", "--pid", tracked.pid)["notes"] == []


def test_ps_has_no_zeros_for_what_a_region_does_not_tell(world, untracked):
    (line,) = [line for line in world.run("ps").stdout.splitlines() if str(untracked.pid) in line.split()]
    words = line.split()
    assert words[words.index("GiB") + 1 :][:2] == ["-", "-"] and "0" not in words[words.index("GiB") :]


def test_ps_has_the_signs_of_smi(world, tmp_path):
    """A region of an older tt-metal does not have everything: what is in use is a bound."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    machine.card(0, "n150", "wormhole_b0", chip=7)
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(3, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB))
    for locale, sign in (("C.UTF-8", "\u2265"), ("C", ">")):
        env = {**world.env, "LC_ALL": locale}
        rows = {command: world.run(command, env=env).stdout for command in ("smi", "ps")}
        assert all(sign in text for text in rows.values()), rows


def test_run_counts_only_processes_that_could_hold_device_memory(ttmem, build, tmp_path):
    """Shells and tools are not worth a word; one that has a device open is."""
    node = tmp_path / "dev" / "tenstorrent" / "0"
    node.parent.mkdir(parents=True)
    node.touch()
    player = build / "tests" / "programs" / "player"
    report = tmp_path / "report.json"
    tools = "for i in 1 2 3; do sleep 0.4 & done; wait; echo 'alloc 0 DRAM 0x1000 64' | "
    done = ttmem("run", "--json", report, "--", "sh", "-c", f"{tools} {player} > /dev/null")
    assert "1 process tracked\n" in done.stderr
    document = check_schema(json.loads(report.read_text()))
    assert document["without_book"] >= 3 and document["untracked"] == 0
    done = ttmem("run", "--json", report, "--", "sh", "-c", f"(sleep 1 < {node}) & {tools} {player} > /dev/null; wait",
                 env={"TTMEM_DEV_ROOT": str(tmp_path / "dev")})
    assert "1 process tracked, 1 that uses a device or tt-metal not\n" in done.stderr
    assert json.loads(report.read_text())["untracked"] == 1


def test_the_folder_of_the_black_box_is_made(ttmem, build, tmp_path):
    folder = tmp_path / "new" / "folder"
    done = ttmem("run", "-q", f"--black-box={folder}", "--", "true")
    assert done.returncode == 0 and folder.is_dir()
    (tmp_path / "file").touch()
    done = ttmem("run", "-q", f"--black-box={tmp_path / 'file' / 'below'}", "--", "true")
    assert done.returncode != 0 and "--black-box" in done.stderr
