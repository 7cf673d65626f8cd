# SPDX-License-Identifier: Apache-2.0
"""Keys and the mouse in commands that go on until they are stopped; what they do in ttmem top is in test_top.py."""

import pytest

from terminal import Terminal

# Runs what follows, and tells how it ended and left the terminal.
AND_THEN = ["sh", "-c", '"$@"; echo code $?; exec stty -a', "sh"]


@pytest.fixture
def screen(world, tmp_path):
    started = []

    def start(*command):
        started.append(Terminal(command, world.env, folder=tmp_path))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.mark.parametrize("words", [["smi", "-w", "-r", "600000"], ["watch"]], ids=["smi", "watch"])
def test_q_ends_it_and_leaves_the_terminal_as_it_was(world, screen, words):
    player = world.player("alloc 0 DRAM 0x1000 10")
    terminal = screen(*AND_THEN, world.program, *words)
    terminal.wait(str(player.pid))
    terminal.press("q")
    terminal.wait("code 0")
    terminal.wait(lambda text: " icanon" in text and " echo " in text)


def test_other_keys_do_not_end_it(world, screen):
    player = world.player("alloc 0 DRAM 0x1000 10")
    terminal = screen(world.program, "watch")
    terminal.wait("is being watched")
    terminal.press("x", "Enter", "Escape")
    player.play("alloc 0 DRAM 0x2000 10")
    terminal.wait("0x2000")


def test_a_recording_tells_how_far_it_is(world, screen, tmp_path):
    player = world.player("alloc 0 DRAM 0x1000 10")
    terminal = screen(world.program, "record", player.pid, "-o", tmp_path / "test.ttrec")
    terminal.wait(lambda text: text.startswith("1 event, ") and ", lag 0 events  (Ctrl-C ends it)" in text)
    player.play("free 0 DRAM 0x1000")
    terminal.wait(lambda text: text.startswith("2 events, "))


def test_nothing_is_read_that_is_no_terminal(world, screen, tmp_path):
    world.player("alloc 0 DRAM 0x1000 10")
    (tmp_path / "input").write_text("q for the next one\n")
    script = 'timeout -s INT 0.5 "$1" smi -w -r 50; cat'
    terminal = screen("sh", "-c", f'({script}) < "$0"', tmp_path / "input", world.program)
    terminal.wait("q for the next one")


def test_top_goes_on_after_any_event_of_the_mouse(world, screen):
    """ncurses waits for a key after an event that it was not asked for."""
    player = world.player()
    terminal = screen(world.program, "top", "-r", 100)
    for count, code in enumerate((0, 3, 1, 3, 2, 3, 64, 65, 66, 67, 32, 35, 128), 1):
        player.play(f"alloc 0 DRAM {0x1000 * count:#x} 4096")
        terminal.wait(f"{4 * count}.0 KiB in {count} buffer{'s' if count > 1 else ''},")
        terminal.mouse_events([code], 10, 10)
