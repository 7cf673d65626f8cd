# SPDX-License-Identifier: Apache-2.0
"""ttmem top --from FILE: the screen at any moment of a recording."""

import re

import pytest

from terminal import Terminal

LINES = [
    "device 0 0xabc wormhole_b0 n150 0 100000 100",
    "alloc 0 DRAM 0x1000 100 weights",
    "mark loaded",
    "alloc 0 DRAM 0x3000 500 high",
    "free 0 DRAM 0x3000",
    "failed 0 DRAM 4096 wish",
    "alloc 0 DRAM 0x4000 60 cache",
    "free 0 DRAM 0x4000", "free 0 DRAM 0x4000",
]  # fmt: skip


@pytest.fixture
def recording(world, tmp_path):
    path = tmp_path / "run.ttrec"
    player = world.build / "tests" / "programs" / "player"
    done = world.run("run", "--record", path, "--", player, input="\n".join(LINES) + "\n")
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def top(world, recording, tmp_path):
    """Call as top("--at", "peak"): a Terminal with the recording in it."""
    started = []

    def start(*args):
        command = [world.build / "src" / "cli" / "ttmem", "top", "--ascii", "--from", recording, *args]
        terminal = Terminal(command, world.env, folder=tmp_path, columns=120, rows=40)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.close()


def moment(text):
    """Where the cursor is, and the length; None while it is being read."""
    found = re.search(r"(\d+\.\d+) of (\d+\.\d+) s ", text)
    return (float(found[1]), float(found[2])) if found and "reading..." not in text else None


def test_it_begins_at_the_peak_and_goes_to_other_moments(top):
    terminal = top()
    terminal.wait("600 B in 2 buffers, 1 process, 1 device")
    terminal.press("End")
    terminal.wait(lambda text: "0 processes" in text and moment(text) and len(set(moment(text))) == 1)
    terminal.press("Home")
    terminal.wait(lambda text: (moment(text) or [1])[0] == 0)
    terminal.press(*["Right"] * 50)
    terminal.wait(lambda text: moment(text) and abs(moment(text)[0] - moment(text)[1] / 2) < 0.002)
    terminal.press(*["Left"] * 60)
    terminal.wait(lambda text: (moment(text) or [1])[0] == 0)
    terminal.press("p")
    terminal.wait("600 B in 2 buffers, 1 process, 1 device")
    terminal.press("q")
    assert terminal.exit_code() == 0


def test_incidents_one_after_the_other(top):
    terminal = top("--at", "loaded")
    terminal.wait("100 B in 1 buffer, 1 process")
    terminal.press("5")
    terminal.wait(lambda text: "1 process" in text and "failed" not in text)
    terminal.press("i")
    terminal.wait(lambda text: "alloc_failed" in text and "double_free" not in text)
    terminal.press("i")
    terminal.wait("double_free")
    terminal.press("End", "i")
    terminal.wait("there is no incident after this moment")


def test_details_are_of_the_moment(top):
    terminal = top()
    terminal.wait("600 B in 2 buffers")
    terminal.press("3")
    terminal.wait(lambda text: "high" in text and "weights" in text)
    terminal.press("i")
    terminal.wait(lambda text: "weights" in text and "high" not in text)
    terminal.press("?")
    terminal.wait("the moment when most was held")


def test_a_file_that_is_none_is_told(world, tmp_path):
    done = world.run("top", "--from", tmp_path / "none", check=False)
    assert done.returncode == 1 and "none" in done.stderr
    done = world.run("top", "--at", "peak", check=False)
    assert done.returncode == 2 and "--from FILE" in done.stderr
