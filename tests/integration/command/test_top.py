# SPDX-License-Identifier: Apache-2.0
"""ttmem top in a real terminal: every view at three sizes, keys, mouse, and a daemon that exits."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import machines
from conftest import LIMIT
from nativesocket import document
from terminal import Terminal, masker
from world import check_schema, end_children, wait_for

CARD = "device 0 0x1f2e3d4c5b6a7988 wormhole_b0 n300 0 12884901888 94371840"
REMOTE = "device 1 0x1f2e3d4c5b6a7989 wormhole_b0 n300 1 12884901888 94371840"
VIEWS = ["devices", "processes", "buffers", "sites", "incidents", "telemetry"]
# Runs what follows, and tells how it ended and left the terminal.
AND_THEN = ["sh", "-c", '"$@"; echo code $?; exec stty -a', "sh"]
SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.fixture
def top(build, clean_env, tmp_path):
    """Call as top("-d", 0, env=...): a Terminal with ttmem top in it."""
    started = []

    def start(*args, env=None, before=(), **options):
        command = [*before, build / "src" / "cli" / "ttmem", "top", "-r", 100, *args]
        terminal = Terminal(command, {**clean_env, **(env or {})}, folder=tmp_path, **options)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.close()


def cast(world):
    """Two processes with everything that a view can show but stacks; what they hold is always the same."""
    large = world.player(
        CARD,
        REMOTE,
        "push load",
        "alloc 0 DRAM 0x100000 10200547328 weights",
        "alloc 1 DRAM 0x100000 6442450944 weights",
        "push layer%200",
        "alloc 0 L1 0x2000 1048576 activations",
        "alloc 0 L1_SMALL 0x3000 16384 semaphores",
        "alloc 0 TRACE 0x9000 67108864 trace%20of%20%e9%87%8d%e3%81%bf",
        "kernel 0 0x4000 65536 1",
        "pop",
        "pop",
        "alloc 0 DRAM 0x5000 4096",
        "free 0 DRAM 0x5000",
        "free 0 DRAM 0x5000",
        TTMEM_STACKS="off",
    )
    small = world.player(
        "alloc 3 SYSTEM_MEMORY 0x1000 2097152 queue",
        "alloc 3 DRAM 0x1000 5242880 %1b[2J%e2%80%aehostile",
        "alloc 3 DRAM 0x2000 1048576",
        "failed 3 L1 1048576 65536",
        TTMEM_STACKS="off",
    )
    return large, small


@pytest.mark.needs_root
def test_every_view_at_three_sizes(world, top):
    large, small = cast(world)
    terminal = top(env=world.env)
    mask = masker(large.pid, small.pid)
    for columns, rows in SIZES:
        terminal.resize(columns, rows)
        for number, view in enumerate(VIEWS):
            terminal.press(str(number + 1))
            terminal.compare(f"top-{columns}x{rows}-{view}", mask)
    terminal.press("?")
    terminal.compare("top-200x60-help", mask)
    terminal.press("q", "q")
    assert terminal.exit_code() == 0


@pytest.mark.needs_root
def test_top_shows_driver_and_regions_without_books(top, tmp_path):
    """What the driver and tt-metal's regions tell is there without any book."""
    machine = machines.n300(tmp_path / "machine")
    terminal = top(env=machine.env())
    for view in ("1", "6"):
        terminal.press(view)
        terminal.compare(f"top-80x24-n300-{VIEWS[int(view) - 1]}", masker())
    terminal.press("q", "q")
    assert terminal.exit_code() == 0


def test_top_shows_idle_cards(top, tmp_path):
    machine = machines.idle(tmp_path / "machine")
    terminal = top(env=machine.env())
    terminal.press("1")
    terminal.wait(lambda text: text.count("n150 wormhole_b0") == 2 and "no device" not in text)
    terminal.press("6")
    terminal.wait(lambda text: text.count("45.4 C") == 2)


def test_top_shows_the_state_of_a_card(top, tmp_path):
    """Its name too, because top has seen it before the reset."""
    machine = machines.idle(tmp_path / "machine")
    terminal = top(env=machine.env())
    terminal.press("1")
    terminal.wait(lambda text: text.count("n150 wormhole_b0") == 2)
    machine.reset(0)
    terminal.wait(lambda text: "n150 in reset" in text)
    machine.remove(0)
    terminal.wait(lambda text: "n150 gone" in text)


def test_top_draws_in_ascii(world, top):
    large, small = cast(world)
    terminal = top("--ascii", env=world.env)
    terminal.press("1")
    terminal.compare("top-80x24-ascii", masker(large.pid, small.pid))
    # By the locale: then the names of others are ASCII, too.
    terminal = top(env={**world.env, "LC_ALL": "C"})
    terminal.press("3")
    terminal.wait(lambda text: "trace of ????" in text)
    assert terminal.text().isascii()


def test_top_chart_grows_over_time(world, top):
    world.player(CARD, "alloc 0 DRAM 0x1000 12884901888 all")
    terminal = top(env=world.env)

    def dots():
        return sum("\u2800" < c <= "\u28ff" for c in terminal.text())

    wait_for(lambda: dots() > 0, "the first points")
    first = dots()
    wait_for(lambda: dots() > first, "more points")
    for seconds in (120, 300, 30, 60):
        terminal.press("t")
        terminal.wait(f"charts over {seconds} seconds")
        terminal.wait(f"{seconds} s ago")


def columns_of_charts(text):
    """Columns of the screen with a point of a chart in them."""
    return {i for line in text.split("\n") for i, c in enumerate(line) if "\u2800" < c <= "\u28ff"}


def test_top_charts_begin_with_what_the_daemon_knows(ttmemd, top):
    ttmemd.start()
    player = ttmemd.player(CARD, "alloc 0 DRAM 0x1000 12884901888 all")

    def points():
        rows = document(ttmemd, "/api/v1/series?type=DRAM")["series"]
        return rows and len(rows[0]["points"]) >= 6

    wait_for(points, "six seconds")
    # It reads once: all the other points are not its own.
    terminal = top("-r", 600000, env=ttmemd.env)
    terminal.wait(lambda text: len(columns_of_charts(text)) >= 3)
    terminal.press("2", "/", *str(player.pid), "Enter")
    terminal.wait(lambda text: "Processes: 1" in text and len(columns_of_charts(text)) >= 3)


def test_top_keeps_a_stack_unfolded(world, top):
    world.player("alloc 0 DRAM 0x1000 4096 weights", TTMEM_STACKS="fp")
    terminal = top(env=world.env, columns=120)
    terminal.press("3")
    terminal.wait("weights")
    terminal.press("Enter")
    terminal.wait(lambda text: re.search(r"^ +at \w+ \(.*player\.c:\d+\)", text, re.M))

    def ages(text):
        return re.findall(r"0x1000 +1 +(\d+ \w+)", text)

    first = ages(terminal.text())
    assert first
    # Read again at least once.
    terminal.wait(lambda text: ages(text) and ages(text) != first)
    assert re.search(r"^ +at \w+ \(.*player\.c:\d+\)", terminal.text(), re.M)


def test_top_enters_a_row_and_returns(world, top):
    large, small = cast(world)
    terminal = top(env=world.env)
    terminal.wait("> ")
    # The third device is the small one's: by arrows, or with the mouse.
    terminal.press("Right", "Right", "Enter")
    terminal.wait("Processes with device 3: 1")
    terminal.wait(lambda text: f"{small.pid:>8}" in text and f"{large.pid:>8}" not in text)
    terminal.press("Enter")
    terminal.wait(f"player ({small.pid}): 3 buffers, 8.0 MiB")
    terminal.press("Enter")
    terminal.wait("5242880 bytes, allocated by thread")
    terminal.wait("no stack was recorded")
    terminal.press("Escape")
    terminal.wait(lambda text: "allocated by" not in text)
    terminal.press("Escape")
    terminal.wait("Processes with device 3: 1")
    terminal.press("Escape")
    terminal.wait("Device 3 DRAM")
    terminal.press("2")
    terminal.wait("Processes: 2")


def test_top_says_why_a_buffer_takes_more_than_its_size(world, top):
    world.player("device 0 0xabc wormhole_b0 n150 0 12000 1200000 12", "place 0 L1 0x40 2048 0 2048 12",
                 "alloc 0 DRAM 0x40 64")
    terminal = top(env=world.env)
    terminal.resize(120, 40)
    terminal.wait(lambda text: re.search(r"^.* L1 +2\.0 KiB +24\.0 KiB +2\.0 KiB +1$", text, re.M))
    terminal.wait(lambda text: re.search(r"^.* DRAM +64 B +- +64 B +1$", text, re.M))
    terminal.press("2")
    terminal.wait("Processes")
    terminal.press("Enter")
    terminal.wait("2 buffers, 2.1 KiB")
    terminal.press("Enter")
    terminal.wait("takes 24.0 KiB: 2.0 KiB in each of 12 banks")
    terminal.press("Enter", "Down", "Enter")
    terminal.wait("what it takes of each bank was not told")


def test_top_sorts_and_filters(world, top):
    large, small = cast(world)
    terminal = top(env=world.env)
    terminal.press("2")
    terminal.wait("DRAM\u25be")

    def order(text):
        found = [text.find(f"{p.pid:>8}") for p in (large, small)]
        return None if -1 in found else found[0] < found[1]

    terminal.wait(lambda text: order(text) is True)
    terminal.press("r")
    terminal.wait(lambda text: "DRAM\u25b4" in text and order(text) is False)
    terminal.press(">")
    terminal.wait("L1\u25be")
    terminal.press("<", "<", "<", "<", "<")
    terminal.wait("PID\u25be")
    terminal.press("/", *str(small.pid))
    terminal.wait(f"filter: {small.pid}_")
    terminal.wait(lambda text: f"{large.pid:>8}" not in text and f"{small.pid:>8}" in text)
    terminal.press("Enter")
    terminal.wait("Processes: 1  filter:")
    terminal.press("Escape")
    terminal.wait("Processes: 2")
    # Buffers by name, also among all of them; the filter of one view is not that of another.
    terminal.press("3", "/", *"ACTIVATION", "Enter")
    terminal.wait(lambda text: "6 buffers" in text and "1 shown" in text and "weights" not in text)
    terminal.press("Escape")
    terminal.wait("weights")


def test_top_unfolds_call_sites(world, top):
    player = world.player("alloc 0 DRAM 0x1000 4096 weights", TTMEM_STACKS="fp")
    terminal = top(env=world.env, columns=120)
    terminal.press("4")
    terminal.wait("weights")
    terminal.press("Enter")
    terminal.wait(lambda text: re.search(r"^ +at \w+ \(.*player\.c:\d+\)", text, re.M))
    # It is live: one more of the same, and it stays unfolded.
    player.play("alloc 0 DRAM 0x9000 1048576 other")
    terminal.wait("1.0 MiB")
    terminal.wait(lambda text: re.search(r"^ +at \w+ \(.*player\.c:\d+\)", text, re.M))


def test_top_shows_a_hundred_names_of_one_line_as_one_site(world, top):
    world.player(*[f"alloc 0 DRAM {hex(n << 12)} {4096 + n} kv.{n}" for n in range(1, 101)], TTMEM_STACKS="fp")
    terminal = top(env=world.env, columns=120)
    terminal.press("4")
    rows = terminal.wait(lambda text: "100 names" in text)
    assert sum("names" in line or "kv." in line for line in rows) == 1
    # Its names are below it.
    terminal.press("Enter")
    terminal.wait("kv.100")


def test_top_follows_the_mouse(world, top):
    _, small = cast(world)
    terminal = top(env=world.env)
    terminal.wait("> ")
    terminal.mouse(0, 0, 14)
    # A picture may be taken while it is being drawn.
    lines = terminal.wait(lambda text: "Processes: 2" in text and f"{small.pid:>8}" in text)
    row = next(i for i, line in enumerate(lines) if f"{small.pid:>8}" in line)
    terminal.mouse(0, row, 20)
    terminal.wait(lambda text: re.search(rf"^>{small.pid:>8}", text, re.M))
    terminal.mouse(0, row, 20)  # once more: deeper
    terminal.wait(f"player ({small.pid}): 3 buffers")
    terminal.mouse(65, 10, 10)
    terminal.wait(lambda text: re.search(r"^> +1\.0 MiB", text, re.M))
    terminal.mouse(64, 10, 10)
    terminal.wait(lambda text: re.search(r"^> +5\.0 MiB", text, re.M))
    title = terminal.wait(lambda text: "   AGE" in text)[3].index("AGE")
    terminal.mouse(0, 3, title)
    terminal.wait("AGE\u25be")


def test_top_can_be_paused(world, top):
    player = world.player(CARD, "alloc 0 DRAM 0x1000 4096")
    terminal = top(env=world.env)
    terminal.wait("4.0 KiB in 1 buffer,")
    terminal.press("p")
    terminal.wait("PAUSED")
    player.play("alloc 0 DRAM 0x9000 4096")
    terminal.press("t")
    terminal.wait("charts over 120 seconds")
    assert "4.0 KiB in 1 buffer," in terminal.text()
    terminal.press("p")
    terminal.wait(lambda text: "8.0 KiB in 2 buffers," in text and "PAUSED" not in text)


def test_top_saves_the_screen(world, top, tmp_path):
    large, _ = cast(world)
    terminal = top(env=world.env)
    terminal.wait("> ")
    terminal.press("s")
    lines = terminal.wait("saved as ttmem-smi-")
    name = re.search(r"ttmem-smi-[\d-]+\.json", lines[-1])[0]
    document = check_schema(json.loads((tmp_path / name).read_text()))
    assert document["schema"] == "ttmem.smi/1" and len(document["processes"]) == 2
    terminal.press("3")
    terminal.wait(f"({large.pid}): 6 buffers")
    terminal.press("s")
    lines = terminal.wait("saved as ttmem-buffers-")
    name = re.search(r"ttmem-buffers-[\d-]+\.json", lines[-1])[0]
    document = check_schema(json.loads((tmp_path / name).read_text()))
    assert len(document["buffers"]) == 6
    os.chmod(tmp_path, 0o500)
    terminal.press("s")
    # Root may write anywhere: then there is one more file.
    terminal.wait("cannot be saved" if os.geteuid() else "saved as")
    os.chmod(tmp_path, 0o700)


def test_top_colours_by_use(world, top):
    world.player(
        CARD,
        REMOTE,
        "device 2 0x3 wormhole_b0 n150 0 1000 1000",
        "alloc 0 DRAM 0x1000 9663676416",  # 75 %
        "alloc 1 DRAM 0x1000 11596411700",  # 90 %
        "alloc 2 DRAM 0x1000 749",
    )

    def colour(terminal, share):
        terminal.wait(f"  {share} ")
        line = wait_for(
            lambda: [line for line in terminal.lines(colours=True) if share in line], share
        )[0]
        return re.findall(r"\x1b\[[\d;]*?(3[0-7])m", line[: line.index(share)])[-1:]

    terminal = top(env=world.env)
    # The selected row is shown by its background instead.
    terminal.wait("\n>    0")
    assert colour(terminal, "90.0") == ["31"]
    assert colour(terminal, "74.9") == ["32"]
    terminal.press("Down")
    terminal.wait("\n>   1R")
    assert colour(terminal, "75.0") == ["33"]
    terminal = top(env={**world.env, "NO_COLOR": "1"})
    terminal.wait("75.0")
    assert not re.search(r"\x1b\[[\d;]*[34][0-7]m", "\n".join(terminal.lines(colours=True)))


def test_top_colours_what_is_over_its_limit(top, tmp_path):
    machine = machines.hot(tmp_path / "machine")
    machine.card(1, "p150a", "blackhole", chip=1)  # selected rows have another background
    terminal = top(env=machine.env())
    terminal.wait("Devices")
    terminal.press("6")
    terminal.wait("85.5 C")
    terminal.press("Down")
    terminal.wait("\n>    1")
    (line,) = wait_for(
        lambda: [line for line in terminal.lines(colours=True) if "85.5 C" in line and ">" not in line], "the card")
    assert re.findall(r"\x1b\[[\d;]*?(3[0-7])m", line[: line.index("85.5 C")])[-1:] == ["31"]


def test_top_can_be_limited_to_one_device(world, top):
    large, small = cast(world)
    terminal = top("-d", 3, env=world.env)
    terminal.wait(lambda text: "Device 3 DRAM" in text and "n300" not in text)
    terminal.press("2")
    terminal.wait("Processes: 1")
    terminal.wait(lambda text: f"{small.pid:>8}" in text and f"{large.pid:>8}" not in text)


def test_top_survives_any_terminal_size(world, top):
    cast(world)
    terminal = top(env=world.env)
    for columns, rows in [(20, 5), (1, 1), (40, 10), (41, 300), (300, 11), (80, 24)]:
        terminal.resize(columns, rows)
        for key in "123456?n":
            terminal.press(key)
    terminal.press("1")
    terminal.wait("Device 0 DRAM")
    terminal.press("q")
    assert terminal.exit_code() == 0


def test_top_shows_notes(world, top):
    terminal = top(env=world.env, columns=60)
    terminal.wait("1 note (n)")
    terminal.press("n")
    # It is longer than a line.
    terminal.wait(lambda text: re.search(r"no tracked process found.*\n.*starts\?", text))
    terminal.press("n")
    terminal.wait(lambda text: "starts?" not in text)


@pytest.mark.parametrize("term", ["dumb", "no-such-terminal"])
def test_top_refuses_terminals_without_cursor_control(world, top, term):
    terminal = top(env=world.env, before=[*AND_THEN, "env", f"TERM={term}"])
    text = "\n".join(terminal.wait("code 1"))
    assert "cannot place text" in text and '"ttmem smi"' in text


def test_top_needs_a_terminal(world):
    result = world.run("top", stdin=subprocess.DEVNULL)
    assert result.returncode == 1 and result.stdout == ""
    assert "needs a terminal" in result.stderr and '"ttmem smi"' in result.stderr


def test_top_restores_the_terminal_on_a_signal(world, top):
    terminal = top(env=world.env, before=AND_THEN)
    terminal.wait("no device yet")
    program = wait_for(
        lambda: subprocess.run(
            ["pgrep", "-t", terminal.info("pane_tty")[5:], "-x", "ttmem"], capture_output=True, text=True
        ).stdout.split(),
        "the program",
    )
    os.kill(int(program[0]), signal.SIGTERM)
    lines = terminal.wait("code 0")
    assert "no device yet" not in "\n".join(lines)
    terminal.wait(lambda text: re.search(r"(?<!-)\bicanon\b", text) and re.search(r"(?<!-)\becho\b", text))


def test_top_goes_on_while_the_daemon_restarts(ttmemd, top):
    ttmemd.start()
    player = ttmemd.player("alloc 0 DRAM 0x1000 4096 weights")
    lost = ttmemd.player("alloc 0 DRAM 0x1000 1048576 lost")
    lost.kill()
    ttmemd.wait_for_leak(lost.pid)
    terminal = top(env=ttmemd.env)
    terminal.wait(lambda text: re.search(r" ttmemd  \d", text))
    terminal.press("5", "/", *str(lost.pid), "Enter")
    terminal.wait(lambda text: re.search(rf"leak +{lost.pid} player .* 1\.0 MiB +1 ", text))
    terminal.press("Enter")
    terminal.wait("1.0 MiB in 1 buffer of DRAM, lost")
    terminal.press("2", "/", *str(player.pid), "Enter")
    ttmemd.kill()
    terminal.wait("ttmemd has gone; going on without it")
    terminal.wait("no ttmemd")
    player.play("alloc 0 DRAM 0x9000 1048576 more")
    terminal.wait(lambda text: re.search(rf"{player.pid} \w+ +player .* 1\.0 MiB ", text))
    # What only it knew is missing, and that is said.
    terminal.press("5")
    terminal.wait("only ttmemd remembers the ended")
    ttmemd.start()
    terminal.wait("ttmemd is there")
    terminal.wait(lambda text: re.search(rf"leak +{lost.pid} ", text))


def test_top_stays_usable_while_the_daemon_hangs(ttmemd, top):
    ttmemd.start()
    player = ttmemd.player("alloc 0 DRAM 0x1000 4096 weights")
    terminal = top(env=ttmemd.env)
    terminal.wait(lambda text: re.search(r" ttmemd  \d", text))
    os.kill(ttmemd.process.pid, signal.SIGSTOP)
    # Keys work while the daemon does not answer: otherwise this would take half a minute.
    begin = time.monotonic()
    for key, title in [("5", "reading..."), ("1", "Device 0 DRAM"), ("2", "Processes"), ("?", "this; any")]:
        terminal.press(key)
        terminal.wait(title)
    assert time.monotonic() - begin < 30
    terminal.press("Escape")
    terminal.wait("ttmemd does not answer; going on without it")
    player.play("alloc 0 DRAM 0x9000 1048576 more")
    terminal.press("/", *str(player.pid), "Enter")
    terminal.wait(lambda text: re.search(rf"{player.pid} \w+ +player .* 1\.0 MiB ", text))
    terminal.press("5", "q")
    assert terminal.exit_code() == 0
    os.kill(ttmemd.process.pid, signal.SIGCONT)


def test_a_process_is_ended_after_a_question(world, top):
    player = world.player("alloc 0 DRAM 0x1000 4096")
    terminal = top(env=world.env)
    terminal.press("2")
    terminal.wait(f"{player.pid} ")
    terminal.press("K")
    terminal.wait(f"End player[{player.pid}] of")
    terminal.press("t")
    assert player.process.wait(timeout=LIMIT) == -signal.SIGTERM
    terminal.wait(f"player[{player.pid}] of root has ended" if os.geteuid() == 0 else "has ended")


def test_a_tree_has_children_below_who_started_them(world, top):
    player = world.player("alloc 0 DRAM 0x1000 4096")
    child = player.play("fork")
    world.show(child)
    player.play("alloc 0 DRAM 0x2000 1073741824")  # by the child

    def place(text, pid):
        """The row of a process, and the column of its name."""
        rows = ((i, line) for i, line in enumerate(text.split("\n")) if re.match(rf"[> ] *{pid} .*player", line))
        return next(((i, line.index("player")) for i, line in rows), None)

    def is_tree(text):
        parent, below = place(text, player.pid), place(text, child)
        return parent and below and below == (parent[0] + 1, parent[1] + 2)

    def is_list(text):
        parent, below = place(text, player.pid), place(text, child)
        return parent and below and below == (parent[0] - 1, parent[1])

    try:
        terminal = top(env=world.env)
        terminal.press("2")
        terminal.wait(is_list)
        terminal.press("T")
        terminal.wait(is_tree)
        terminal.press("T")
        terminal.wait(is_list)
    finally:
        end_children(child)


# As ordinary users run all tests: in a user namespace, where root has no number. Paths that go through
# folders of strangers are refused.
@pytest.mark.skipif(os.stat("/").st_uid not in (0, os.geteuid()), reason="the owner of / is not known here")
def test_settings_come_back(world, top):
    world.player("alloc 0 DRAM 0x1000 4096")
    first = top(env=world.env)
    first.press("4")
    first.wait("Call sites:")
    first.press("W")
    first.wait("settings saved in")
    first.press("q")
    assert first.exit_code() == 0
    second = top(env=world.env)
    second.wait("Call sites:")
