# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help, mistakes, exit codes."""

import re

import pytest

from conftest import ROOT, has_legacy
from world import TYPES_TEXT

READING = ["smi", "top", "ps", "buffers", "growth", "history", "incidents", "leaks", "watch", "status"]
READING += ["dump"] * has_legacy()


def test_help(world):
    text = world.text("help")
    assert text == world.text("--help") == world.text("-h")
    for name in READING:
        assert re.search(rf"^  {name} +\w", text, re.M), name
        assert world.text(name, "--help") == world.text("help", name)
        assert world.text(name, "--help").startswith(f"usage: ttmem {name} [OPTION]...")
    result = world.run()
    assert result.returncode == 2 and result.stdout == text


def test_version(world):
    header = (ROOT / "include" / "ttmem" / "ttmem.h").read_text()
    version = ".".join(re.findall(r"^#define TTMEM_VERSION_[A-Z]+ (\d+)$", header, re.M))
    assert world.text("--version") == f"ttmem {version}\n"


@pytest.mark.parametrize(
    "args, words",
    [
        (["smu"], ['unknown command "smu"', 'did you mean "smi"?']),
        (["nothing-like-it"], ['unknown command "nothing-like-it"', "ttmem help"]),
        (["-x"], ['ttmem: expects a command before options, got "-x"\n', "ttmem help"]),
        (["--jsn"], ['expects a command before options, got "--jsn"']),
        (["help", "bufferz"], ['did you mean "buffers"?']),
        (["smi", "--jsn"], ['unknown option "--jsn"', "did you mean --json?", "ttmem smi --help"]),
        (["smi", "-x"], ['unknown option "-x"']),
        (["smi", "--zzz"], ['unknown option "--zzz"']),
        (["smi", "extra"], ['takes only options, got "extra"']),
        (["smi", "-d"], ["-d expects a device number such as 0, or a unique id such as 0x1f2e, got nothing"]),
        (["smi", "-d", "2000"], ['-d expects a device number', 'got "2000"']),
        (["smi", "-r", "0"], ['-r expects milliseconds, 1 or more, got "0"']),
        (["smi", "--json=yes"], ['--json takes no value, got "yes"']),
        (["smi", "--json", "--csv"], ["not both"]),
        (["ps", "--json", "--csv"], ["not both"]),
        (["leaks", "--since", "yesterday"], ['--since expects a time such as 30min', 'got "yesterday"']),
        (["buffers", "--type", "L2"], [f'--type expects {TYPES_TEXT}, got "L2"\n']),
        (["run", "--ignore", "L9", "true"], ['--ignore expects DRAM, L1,', 'got "L9"']),
        (["buffers", "--pid=abc"], ['--pid expects a process id, got "abc"']),
        (["buffers", "--by", "size"], ['--by expects name, phase, site or thread, got "size"']),
        (["buffers", "--sort", "name"], ['--sort expects size or age, got "name"']),
        (["fit", "--page", "0", "1G"], ['--page expects a size such as 512, 64K or 1.5GiB, got "0"']),
        (["history"], ["expects one address", "got nothing"]),
        (["history", "1", "2"], ["expects one address", "got 2 arguments"]),
        (["diff", "a"], ["expects two files", "got 1 argument\n"]),
        (["history", "xyz"], ['expects an address such as 0x1000 or 4096, got "xyz"']),
        (["watch", "--format", "xml"], ['--format expects text, seed or json, got "xml"']),
        (["watch", "--ids", "octal"], ['--ids expects hex or decimal, got "octal"']),
    ],
)
def test_mistakes(world, args, words):
    result = world.run(*args)
    assert result.returncode == 2 and result.stdout == ""
    for word in words:
        assert word in result.stderr


def test_what_is_asked_where_nothing_was_reported(ttmem):
    """Not what was done already."""
    assert "libttmem, or use tt-metal and run with --metal?" in ttmem("run", "--", "true").stderr
    with_metal = ttmem("run", "--metal", "--", "true").stderr
    assert "run with --metal" not in with_metal and "tt-metal or ttnn, 0.62 or newer?" in with_metal


@pytest.mark.parametrize("words, said", [
    (["run", "--baseline", "FILE", "--", "true"], "baseline FILE: not JSON: line 1: "),
    (["check", "FILE", "--limit", "DRAM=1G"], "FILE: neither a recording nor JSON: line 1: "),
    (["diff", "FILE", "FILE"], "FILE: neither a recording nor JSON: line 1: "),
    (["run", "--baseline", "NONE", "--", "true"], "baseline NONE: No such file or directory\n"),
    (["run", "--budget", "NONE", "--", "true"], "budget NONE: No such file or directory\n"),
])  # fmt: skip
def test_files_that_cannot_be_used(ttmem, tmp_path, words, said):
    (tmp_path / "FILE").write_text("\x1b[2Jjunk\n")
    done = ttmem(*words, cwd=tmp_path)
    assert done.returncode != 0 and f"ttmem {words[0]}: {said}" in done.stderr and "\x1b" not in done.stderr


def test_options_in_any_order(world):
    player = world.player("alloc 0 DRAM 0x1000 10")

    def history(*args):
        # The offset of the wall clock is measured at each start, to the microsecond.
        text, times = re.subn(r"\d\d:\d\d:\d\d\.\d+", "TIME", world.text("history", *args))
        assert times
        return text

    a = history("0x1000", "--pid", player.pid, "--type=DRAM")
    b = history(f"--pid={player.pid}", "--type", "DRAM", "0x1000")
    c = history("--type", "DRAM", "--", "0x1000")
    assert a == b == c


def test_control_characters_in_mistakes(world):
    result = world.run("\033[2J")
    assert "\033" not in result.stderr and "\\x1b[2J" in result.stderr
    result = world.run("smi", "--\033[2J")
    assert "\033" not in result.stderr


def test_every_command_has_a_manual_page(world):
    text = world.text("help")
    names = re.findall(r"^  (\w+) ", text, re.M)
    missing = [n for n in names if not (ROOT / "docs" / "man" / f"ttmem-{n}.1.scd").exists()]
    assert [name for name in missing if name in READING] == []
