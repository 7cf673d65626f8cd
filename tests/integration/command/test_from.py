# SPDX-License-Identifier: Apache-2.0
"""Any moment of a recording, by the commands that show a moment of now."""

import pytest
from common import LIMIT, wait_for
from recordings import Recording

LINES = [
    "device 0 0xabc wormhole_b0 n150 0 100000 100",
    "alloc 0 DRAM 0x1000 100 weights",
    "push load", "alloc 0 DRAM 0x2000 50 staging", "pop",
    "mark loaded",
    "alloc 0 DRAM 0x3000 500 high",
    "free 0 DRAM 0x3000",
    "failed 0 DRAM 4096 wish",
    "alloc 0 DRAM 0x4000 60 cache",
    "free 0 DRAM 0x4000", "free 0 DRAM 0x4000",
]  # fmt: skip


@pytest.fixture
def recording(world, tmp_path):
    """A run that has ended; nothing of it is left but the file."""
    path = tmp_path / "run.ttrec"
    player = world.build / "tests" / "programs" / "player"
    done = world.run("run", "--record", path, "--", player, input="\n".join(LINES) + "\n")
    assert done.returncode == 0, done.stderr
    return path


def names(world, recording, *args):
    document = world.json("buffers", "--from", recording, *args)
    assert document["recording"]["file"] == str(recording)
    return sorted(buffer["name"] for buffer in document["buffers"])


def test_what_was_live_at_a_moment(world, recording):
    assert names(world, recording, "--at", "loaded") == ["staging", "weights"]
    assert names(world, recording, "--at", "load") == ["staging", "weights"]
    assert names(world, recording, "--at", "peak") == ["high", "staging", "weights"]
    assert names(world, recording, "--at", "failed") == ["staging", "weights"]
    assert names(world, recording, "--at", "end") == ["staging", "weights"]
    assert names(world, recording) == ["staging", "weights"]
    assert len(names(world, recording, "--at", "start")) <= 1


def test_the_document_is_of_that_moment(world, recording):
    (row,) = world.json("ps", "--from", recording, "--at", "peak")["processes"]
    (device,) = row["devices"]
    memory = device["memory"]["DRAM"]
    assert row["alive"] is True and memory["used"] == 650 and memory["peak"] == 650
    document = world.json("ps", "--from", recording)
    (row,) = document["processes"]
    assert row["alive"] is False and document["time_ns"] == document["recording"]["end_ns"]
    assert document["recording"]["missed"] == 0


def test_every_command_that_shows_a_moment(world, recording):
    at_peak = ["--from", recording, "--at", "peak"]
    (device,) = world.json("smi", *at_peak)["devices"]
    assert device["uid"] == "0xabc"
    assert world.json("map", *at_peak)["recording"]
    world.run("fit", "10", *at_peak)
    (peak,) = world.json("peak", "--from", recording)["peaks"]
    assert peak["bytes"] == 650 and peak["exact"] is True
    kinds = {row["kind"] for row in world.json("incidents", "--from", recording)["incidents"]}
    assert kinds == {"alloc_failed", "double_free", "leak"}
    at_mark = world.json("incidents", "--from", recording, "--at", "loaded")
    assert at_mark["incidents"] == []
    (process,) = world.json("leaks", "--from", recording)["processes"]
    assert process["bytes"] == 150 and process["buffer_count"] == 2
    assert world.json("leaks", "--from", recording, "--at", "peak")["processes"] == []
    (life,) = world.json("history", "0x3000", "--from", recording)["buffers"]
    assert [event["op"] for event in life["events"]] == ["alloc", "free"]
    assert world.json("growth", "--from", recording)["sites"] == []


def test_what_grew_until_its_process_ended(world, tmp_path):
    path = tmp_path / "grows.ttrec"
    player = world.player("alloc 0 DRAM 0x20 64 weights")
    recorder = world.start("record", player.pid, "-o", path)
    player.play("leak 0 4096 2")
    wait_for(lambda: world.json("smi")["totals"]["buffers"] > 200, "its growth")
    player.end()
    assert recorder.wait(timeout=LIMIT) == 0
    (site,) = world.json("growth", "--from", path)["sites"]
    assert site["name"] == "leaked" and site["grown"] >= 2 * 4096
    text = world.run("growth", "--from", path).stdout
    assert "player.c" in text and "ttmemd" not in text


def test_stacks_have_names_without_the_program(world, recording):
    document = world.json("buffers", "--from", recording, "--by", "site")
    assert all(group["site"]["file"].endswith("player.c") for group in document["groups"])


def test_nothing_of_this_machine_is_in_it(world, recording):
    player = world.player("alloc 0 DRAM 0x1000 7 today")
    pids = [row["pid"] for row in world.json("ps", "--from", recording)["processes"]]
    assert len(pids) == 1 and player.pid not in pids
    done = world.run("buffers", "--from", recording, "--pid", player.pid)
    assert done.returncode == 1 and f"the recording has no process {player.pid}" in done.stderr


def test_text_says_which_moment_it_is(world, recording):
    for command in (["smi"], ["ps"], ["buffers"], ["map"], ["fit", "1"], ["incidents"], ["leaks"], ["growth"], ["peak"]):
        first = world.run(*command, "--from", recording, "--at", "end").stdout.splitlines()[0]
        assert first.startswith(f"{recording} at ") and first.endswith(")"), command


def test_a_file_that_ends_too_early_is_shown_up_to_there(world, recording):
    whole = recording.read_bytes()
    recording.write_bytes(whole[:-200])
    done = world.run("ps", "--from", recording)
    assert done.returncode == 0 and done.stdout.splitlines()[0].endswith("; its end is missing")
    assert world.json("ps", "--from", recording)["processes"]


def test_damage_is_told_in_plain_words(world, recording):
    (chunk,) = Recording(recording).of("events")
    whole = bytearray(recording.read_bytes())
    whole[whole.index(chunk.contents) + chunk.size // 8] ^= 1
    recording.write_bytes(whole)
    for command in (["buffers", "--at", "peak", "--from"], ["export", "--format", "csv"]):
        done = world.run(*command, recording)
        assert done.returncode == 1, done.stdout
        assert done.stderr.splitlines()[-1].startswith(f"ttmem {command[0]}: {recording}: damaged"), done.stderr


@pytest.mark.parametrize("command", ["smi", "ps", "buffers", "map", "incidents", "leaks", "growth", "peak"])
def test_mistakes_are_told_in_a_line(world, recording, tmp_path, command):
    done = world.run(command, "--at", "3")
    assert done.returncode == 2 and "--from FILE" in done.stderr
    done = world.run(command, "--from", recording, "--at", "nosuch")
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert 'no time, mark or phase "nosuch"' in done.stderr and "loaded" in done.stderr
    other = tmp_path / "other"
    other.write_text("no")
    done = world.run(command, "--from", other)
    assert (done.returncode, done.stderr) == (1, f"ttmem {command}: {other}: not a recording of ttmem\n")
    done = world.run(command, "--from", tmp_path / "none", "--json")
    assert done.returncode == 1 and "No such file" in done.stderr
    assert done.stdout == ""
