# SPDX-License-Identifier: Apache-2.0
"""How commands write: sizes for people or in full, and long lists through a pager on a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import pytest

from conftest import LIMIT


def on_terminal(world, *args, columns=0, code=0, **settings):
    """What somebody sees at a terminal."""
    ours, theirs = pty.openpty()
    if columns:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, columns, 0, 0))
    process = subprocess.Popen(
        [world.program, *args],
        env={**world.env, "TERM": "xterm", **settings},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    seen = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        seen += more
    os.close(ours)
    limit.cancel()
    assert process.wait(timeout=LIMIT) == code
    return seen.decode().replace("\r\n", "\n")


def test_bytes_option_prints_sizes_in_full(world):
    world.player("alloc 0 DRAM 0x1000 1048577 weights")
    for command in ("smi", "ps", "buffers", "doctor"):
        shown = world.run(command).stdout, world.run(command, "--bytes").stdout
        assert "1048577" not in shown[0] and "1.0 MiB" in shown[0], command
        assert "1048577" in shown[1] and "1.0 MiB" not in shown[1], command


def test_long_output_on_a_terminal_is_paged(world):
    world.player("many 0 DRAM 0x1000 64 100")
    paged = on_terminal(world, "buffers", PAGER="sed 's/^/> /'")
    lines = paged.splitlines()
    assert len(lines) == 101 and all(line.startswith("> ") for line in lines)
    assert "> " not in on_terminal(world, "buffers", PAGER="sed 's/^/> /'", TTMEM_PAGER="")
    assert "> " not in on_terminal(world, "buffers", PAGER="cat")
    # JSON is for programs.
    assert "> " not in on_terminal(world, "buffers", "--json", PAGER="sed 's/^/> /'")


def test_output_to_a_pipe_is_not_paged(world):
    world.player("many 0 DRAM 0x1000 64 100")
    assert "> " not in world.text("buffers", env={**world.env, "TERM": "xterm", "PAGER": "sed 's/^/> /'"})
    assert "> " not in on_terminal(world, "buffers", PAGER="sed 's/^/> /'", TERM="dumb")


def test_leaving_the_pager_early_is_no_error(world):
    world.player("many 0 DRAM 0x1000 64 50000")
    assert len(on_terminal(world, "buffers", PAGER="head -n 3").splitlines()) == 3


def test_less_is_used_where_it_is_there(world, tmp_path):
    """less shows what fits at once, and a machine without it still shows everything."""
    world.player("alloc 0 DRAM 0x1000 64 weights")
    for name in ("LESS", "PAGER", "TTMEM_PAGER"):
        world.env.pop(name, None)
    assert "weights" in on_terminal(world, "buffers")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cat").symlink_to("/bin/cat")
    assert "weights" in on_terminal(world, "buffers", PATH=str(tmp_path / "bin"))


LONG = "model.layers.12.self_attn.k_proj.weight"
NAMES = ("push forward/layer%2012", f"alloc 0 DRAM 0x1000 4096 {LONG}", "alloc 1 SYSTEM_MEMORY 0x123456789abc 5 q")


@pytest.mark.parametrize("pager", ["", "sed 's/$//'"], ids=["plain", "paged"])
def test_tables_are_fitted_into_the_terminal(world, pager):
    world.player(*NAMES)
    for command, few, more in (("ps", 60, 120), ("buffers", 80, 120)):
        shown = {}
        for columns in (60, 80, 93, 120, 200):
            lines = on_terminal(world, command, columns=columns, PAGER=pager).splitlines()
            assert len(lines) == 3 and max(map(len, lines)) <= columns, (command, columns)
            shown[columns] = lines
        assert len(shown[few][0].split()) < len(shown[more][0].split()) == len(shown[200][0].split()) == 11
    assert not any(LONG in line for line in shown[80]) and any(LONG in line for line in shown[200])


def test_sentences_are_broken_between_words(world):
    world.player("alloc 0 L1 0x1000 4096")
    plain = world.run("doctor").stdout
    shown = on_terminal(world, "doctor", columns=80, code=2, NO_COLOR="1")
    assert max(map(len, plain.splitlines())) > 100
    # A path is one word, however long.
    assert not [line for line in shown.splitlines() if len(line) > 80 and len(line.split()) > 1]
    assert re.search(r"\n  why: .*\n       \S", shown) and shown.split() == plain.split()


@pytest.mark.parametrize("settings", [{}, {"COLUMNS": "80"}])
def test_nothing_is_cut_into_a_pipe(world, build, tmp_path, settings):
    program = tmp_path / "fifteen-letters"
    program.symlink_to(build / "tests" / "programs" / "player")
    world.build = None  # the program below is not taken from there
    player = world.adopt(
        subprocess.Popen([program], env={**world.env, "TTMEM": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    world.show(player.pid)
    for line in NAMES:
        player.stdin.write(f"{line}\n".encode())
        player.stdin.flush()
        player.stdout.readline()
    env = {**world.env, **settings}
    text = world.text("buffers", env=env)
    assert LONG in text and "forward/layer 12" in text and "fifteen-letters" in text
    text = world.text("ps", env=env)
    assert all(title in text for title in ("USER", "ALLOCS", "FREES", "LAST"))
    assert "fifteen-letters" in text
    text = world.text("smi", env=env)
    box = [line for line in text.splitlines() if line[0] in "|+"]
    assert "fifteen-letters" in text and len({len(line) for line in box}) == 1


def test_an_empty_answer_says_why(world):
    player = world.player("alloc 0 DRAM 0x1000 4096")
    alone = world.player(TTMEM="0")
    other = "is not tracked, or you may not see it: \"ttmem doctor --pid"
    missing = {
        ("smi", "-d", 99): "there is no device 99; there are 0",
        ("smi", "-d", 0, "-d", 99): "there is no device 99; there are 0",
        ("smi", "-d", 99, "--csv"): "there is no device 99; there are 0",
        ("buffers", "--device", "0xabc"): "there is no device 0xabc; there are 0",
        ("buffers", "--pid", 999999): "there is no process 999999",
        ("buffers", "--pid", 999999, "--csv"): "there is no process 999999",
        ("buffers", "--by", "name", "--pid", alone.pid): f"process {alone.pid} {other} {alone.pid}",
        ("map", "-d", 99): "there is no device 99; there are 0",
        ("growth", "--seconds", 1, "--pid", 999999): "there is no process 999999",
        ("incidents", "--pid", 999999): "there is no process 999999",
    }
    for args, why in missing.items():
        result = world.run(*args)
        assert result.returncode == 1, args
        assert f"ttmem {args[0]}: {why}" in result.stderr, args
        # To programs an empty list is an answer.
        if "--csv" not in args:
            result = world.run(*args, "--json")
            assert result.returncode == 0 and why in result.stderr, args

    # It is there and holds nothing: no mistake.
    result = world.run("buffers", "--pid", player.pid, "--type", "TRACE", "--device", 0)
    assert result.returncode == 0
    assert result.stderr == f"ttmem buffers: no live buffer of type TRACE on device 0 of process {player.pid}\n"
    assert world.run("smi", "-d", 0).stderr == world.run("buffers", "--pid", player.pid).stderr == ""
