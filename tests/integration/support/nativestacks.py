# SPDX-License-Identifier: Apache-2.0
"""Programs that record a native stack and wait, what we show, and what gdb prints for the same point."""

import re
import shutil
import subprocess

import pytest

from cxx import run

READY = """
static int ready(void)
{
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""

HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>
#define KEEP() __asm__ volatile("")
#define NOINLINE __attribute__((noinline))
""" + READY


def start(world, program, how, *arguments, **settings):
    env = {**world.env, "TTMEM": "1", "TTMEM_STACKS": how, **settings}
    process = subprocess.Popen([program, *arguments], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    world.adopt(process)
    while process.stdout.readline() not in ("ready\n", ""):
        pass
    assert process.poll() is None
    world.show(process.pid)
    return process


def frames(row):
    """(function without its arguments, line) up to main, innermost first."""
    result = []
    for frame in row["stack"]:
        result.append((re.sub(r"\(.*", "", frame["function"]), frame["line"]))
        if frame["function"] == "main":
            break
    return result


def taken(world, program, how, **settings):
    """The frames of the one buffer that the program has."""
    process = start(world, program, how, **settings)
    (row,) = world.json("buffers")["buffers"]
    process.kill()
    process.wait()
    return frames(row)


def gdb_says(world, program):
    """The same from gdb, at the first call of ttmem_alloc()."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    env = {**world.env, "TTMEM": "0", "DEBUGINFOD_URLS": ""}
    text = run("gdb", "-batch", "-nx", "-ex", "set width 0", "-ex", "set print frame-arguments none",
               "-ex", "set breakpoint pending on", "-ex", "break ttmem_alloc", "-ex", "run", "-ex",
               "bt", program, env=env, stdin=subprocess.DEVNULL)
    if "#1 " not in text:
        pytest.skip("gdb cannot run programs here")
    result = []
    for line in re.findall(r"^#[1-9]\d* +(?:0x[0-9a-f]+ in )?(.*)$", text, re.MULTILINE):
        name, place = re.match(r"(.*?) \((?:[^()]|\(\))*\)(.*)$", line).groups()
        number = re.search(r":(\d+)$", place)
        result.append((re.sub(r"\(.*", "", name), int(number.group(1)) if number else None))
        if name == "main":
            break
    assert len(result) > 1 and result[-1][0] == "main", text
    return result


def same(told, found):
    """gdb writes some C++ names differently; lines and the number of frames must be equal."""
    assert [line for _, line in found] == [line for _, line in told], (told, found)
    for (theirs, _), (ours, _) in zip(told, found):
        assert ours == theirs or "lambda" in theirs + ours or "::" in theirs, (told, found)
