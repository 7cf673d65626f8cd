# SPDX-License-Identifier: Apache-2.0
"""Completion in the shells themselves: what is offered is what the program has."""

import re
import shutil
import subprocess

import pytest

from conftest import LIMIT, ROOT
from world import TYPES

DATA = ROOT / "data" / "completion"


@pytest.fixture
def shell(world):
    """Runs a script in a shell where ttmem is the one of the build."""

    def run(*command):
        if not shutil.which(command[0]):
            pytest.skip(f"no {command[0]}")
        env = {**world.env, "HOME": str(world.root.parent)}
        env["PATH"] = f"{world.program.parent}:{env['PATH']}"
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0 and done.stderr == "", done
        return done.stdout

    return run


def bash(shell, line):
    words = line.split(" ")
    listed = " ".join(f"'{word}'" for word in words)
    script = f". '{DATA}/ttmem.bash'; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; "
    return shell("bash", "-c", script + '_ttmem; printf "%s\\n" "${COMPREPLY[@]}"').split()


def fish(shell, line):
    lines = shell("fish", "-c", f"source '{DATA}/ttmem.fish'; complete -C '{line}'").splitlines()
    return [line.split("\t")[0] for line in lines]


def zsh(shell, line):
    """zsh completes only on a terminal, so what its function offers is written down instead."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    script = f"""
        _call_program() {{ shift; "$@" }}
        _describe() {{ print -l -- ${{(P)2}} }}
        _values() {{ shift; print -l -- "$@" }}
        _pids() {{ print pids }}
        _users() {{ print users }}
        _files() {{ print files }}
        _normal() {{ print -l "normal:" $CURRENT $words }}
        words=({words}); CURRENT=${{#words}}; service=ttmem
        source '{DATA}/_ttmem'
    """
    return [w.split(":")[0] for w in shell("zsh", "-f", "-c", script).splitlines()]


SHELLS = pytest.mark.parametrize("complete", [bash, fish, zsh], ids=["bash", "fish", "zsh"])


def commands(world):
    return set(re.findall(r"^  ([a-z]+) +\S", world.text("--help"), re.M))


@SHELLS
def test_every_command(world, shell, complete):
    assert commands(world) <= set(complete(shell, "ttmem "))


@SHELLS
def test_every_option_of_every_command(world, shell, complete):
    for command in ("smi", "buffers", "doctor", "export", "run", "check", "growth"):
        options = set(re.findall(r" (--[a-z-]+)", world.text(command, "--help")))
        assert "--help" in options
        assert options <= set(complete(shell, f"ttmem {command} --")), command


@SHELLS
def test_values(shell, complete):
    for option in ("buffers --type", "run --ignore"):
        assert set(TYPES) <= set(complete(shell, f"ttmem {option} ")), option
    assert "github" in complete(shell, "ttmem check --annotate ")
    assert {"size", "age"} <= set(complete(shell, "ttmem buffers --sort "))
    assert {"pprof", "memory_viz", "ttnn-visualizer"} <= set(complete(shell, "ttmem export --format "))
    assert "seed" in complete(shell, "ttmem watch --format ") and "csv" not in complete(shell, "ttmem watch --format ")


@SHELLS
def test_devices(world, shell, complete):
    world.player("alloc 3 DRAM 0x1000 4096", "alloc 17 DRAM 0x1000 4096")
    assert {"3", "17"} <= set(complete(shell, "ttmem smi --device "))


def test_bash_pids(world, shell):
    assert "1" in bash(shell, "ttmem doctor --pid ")


def test_bash_offers_programs_behind_run(shell):
    assert "stty" in bash(shell, "ttmem run --metal -- stt")
    assert bash(shell, "ttmem run -- env /etc/host") == bash(shell, "ttmem run -- /etc/host")
    assert "/etc/hostname" in bash(shell, "ttmem run -- cat --type /etc/hostn")


def test_fish_offers_programs_behind_run(shell):
    assert "stty" in fish(shell, "ttmem run --metal -- stt")
    assert "--metal" not in fish(shell, "ttmem run -- stty --m")


def test_zsh_offers_programs_behind_run(shell):
    # The program is the first word of the line that zsh completes then.
    assert zsh(shell, "ttmem run --metal -- cat --pid x") == ["normal", "3", "cat", "--pid", "x"]


@SHELLS
def test_groups_of_smi_are_users(shell, complete):
    assert "user" in complete(shell, "ttmem smi --by ") and "phase" not in complete(shell, "ttmem smi --by ")
