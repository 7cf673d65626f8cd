# SPDX-License-Identifier: Apache-2.0
"""Native stacks: what the commands show is what the source says, or module and offset, never a guess."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from cxx import run
from world import check_schema

C_SOURCE = """\
#include <stdio.h>
#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")

__attribute__((noinline)) void take(int n)
{
	ttmem_alloc(0, TTMEM_DRAM, (unsigned long)n * 4096, 4096, 0); /* take */
	KEEP();
}

static inline __attribute__((always_inline)) void wrap(int n)
{
	take(n); /* wrap */
}

__attribute__((noinline)) void load(int n)
{
	wrap(n); /* load */
	KEEP();
}

__attribute__((noinline)) void drop(int n)
{
	ttmem_free(0, TTMEM_DRAM, (unsigned long)n * 4096); /* drop */
	KEEP();
}

int main(void)
{
	load(1); /* main */
	take(2); /* twice */
	drop(2);
	drop(2); /* again */
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""

CXX_SOURCE = """\
#include <cstdio>
#include <stdexcept>
#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")

namespace model {
template <typename T> struct Layer {
	__attribute__((noinline)) void place(T address)
	{
		ttmem_alloc(0, TTMEM_L1, address, 64, nullptr); /* place */
		KEEP();
	}
};
}

__attribute__((noinline)) static void fail(unsigned long address)
{
	try {
		if (address)
			throw std::runtime_error("thrown");
	} catch (const std::exception &) {
		model::Layer<unsigned long>().place(address); /* fail */
	}
	KEEP();
}

int main()
{
	auto lambda = [](unsigned long address) __attribute__((noinline)) {
		fail(address); /* lambda */
		KEEP();
	};
	lambda(4096); /* main */
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""


def line_of(source, mark):
    (number,) = [n for n, text in enumerate(source.splitlines(), 1) if f"/* {mark} */" in text]
    return number


@pytest.fixture
def compiled(build, tmp_path):
    """Compiles a source with frame pointers; the program."""

    def compile_it(source, *flags, compiler="gcc"):
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}")
        name = "app.cpp" if compiler == "g++" else "app.c"
        (tmp_path / name).write_text(source)
        library = build / "src" / "lib"
        run(compiler, "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
            "-Wl,--build-id", *flags, tmp_path / name, "-o", tmp_path / "app",
            "-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}")
        return tmp_path / "app"

    return compile_it


def start(world, program, **settings):
    env = {**world.env, "TTMEM": "1", "TTMEM_STACKS": "fp", **settings}
    process = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    world.adopt(process)
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    return process


def frames(row):
    """(function, line) of the frames up to main, innermost first."""
    result = []
    for frame in row["stack"]:
        result.append((frame["function"], frame["line"]))
        if frame["function"] == "main":
            break
    return result


def expected_c():
    return [(name, line_of(C_SOURCE, name)) for name in ("take", "wrap", "load", "main")]


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie"), ("-O2",), ("-O0",)], ids=str)
def test_a_stack_is_what_the_source_says(world, compiled, flags):
    program = compiled(C_SOURCE, *flags)
    process = start(world, program)
    (row,) = world.json("buffers")["buffers"]
    assert frames(row) == expected_c()
    assert {frame["file"] for frame in row["stack"][:4]} == {str(program) + ".c"}

    text = world.text("buffers", "--stacks")
    for name, line in expected_c():
        assert f"{name} ({program}.c:{line})" in text
    (group,) = world.json("buffers", "--by", "site")["groups"]
    assert group["key"].startswith("DRAM: ") and group["key"].endswith(":take")

    (incident,) = world.json("incidents")["incidents"]
    main = line_of(C_SOURCE, "again")
    assert frames(incident["first"]) == [("drop", line_of(C_SOURCE, "drop")), ("main", main - 1)]
    assert frames(incident["second"]) == [("drop", line_of(C_SOURCE, "drop")), ("main", main)]
    assert f"main ({program}.c:{main})" in world.text("incidents")
    assert process.poll() is None


def test_cxx_names_are_demangled(world, compiled):
    program = compiled(CXX_SOURCE, compiler="g++")
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    got = frames(row)
    assert [line for _, line in got] == [
        line_of(CXX_SOURCE, mark) for mark in ("place", "fail", "lambda", "main")
    ]
    assert "Layer<unsigned long>::place" in got[0][0]
    assert got[1][0].startswith("fail") and got[3][0] == "main"


def offsets(row, name):
    texts = [frame["function"] for frame in row["stack"]]
    return [text for text in texts if re.fullmatch(rf"{name}\+0x[0-9a-f]+", text)]


def test_a_stripped_program_has_module_and_offset(world, compiled):
    program = compiled(C_SOURCE)
    run("strip", program)
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    # Three frames: what was inlined has no address of its own.
    assert len(offsets(row, "app")) == 3
    assert all(frame["file"] is None for frame in row["stack"][:3])


def test_a_program_that_was_replaced_is_not_misread(world, compiled, tmp_path):
    program = compiled(C_SOURCE)
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    assert frames(row) == expected_c()
    os.unlink(program)
    # Another program with the same name: its lines would be wrong ones.
    compiled("\n\n\n" + C_SOURCE.replace("take(2)", "load(7); take(2)"))
    # The process still has the one it was started from, and so do we.
    (row,) = world.json("buffers")["buffers"]
    assert frames(row) == expected_c()


def test_a_file_that_is_no_program_gives_no_names(world, compiled):
    # Without a build id only its name leads to it.
    program = compiled(C_SOURCE, "-Wl,--build-id=none")
    start(world, program)
    os.unlink(program)
    (row,) = world.json("buffers")["buffers"]
    assert len(offsets(row, "app")) == 3
    os.mkfifo(program)
    (row,) = world.json("buffers")["buffers"]
    assert len(offsets(row, "app")) == 3


def test_run_names_the_frames_of_leaks(world, compiled, tmp_path):
    program = compiled(C_SOURCE)
    env = {**world.env, "TTMEM_STACKS": "fp"}
    report = tmp_path / "report.json"
    result = world.run("run", "--json", report, "--", program, input="", env=env)
    sites = [line for line in result.stderr.splitlines() if " from " in line]
    assert len(sites) == 1, result.stderr
    for name, line in expected_c():
        assert f"app.c:{line}:{name}" in sites[0]
    (leak,) = check_schema(json.loads(report.read_text()))["leaks"]
    # A baseline must not care for lines.
    assert leak["key"] == "DRAM: " + " <- ".join(f"app.c:{name}" for name, _ in expected_c())
    (stack,) = leak["stacks"]
    assert frames(stack) == expected_c() and stack["buffers"] == 1


def test_stacks_off_records_none(world, compiled):
    start(world, compiled(C_SOURCE), TTMEM_STACKS="off")
    (row,) = world.json("buffers")["buffers"]
    assert row["stack"] == []


PLUGIN = """\
#include <ttmem/ttmem.h>
__attribute__((noinline)) void NAME(unsigned long address)
{
	ttmem_alloc(0, TTMEM_DRAM, address, 64, 0);
	__asm__ volatile("");
}
"""

PLUGIN_USER = """\
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		void (*call)(unsigned long) = (void (*)(unsigned long))dlsym(plugin, argv[i + 1]);

		printf("%p\\n", (void *)call);
		call((unsigned long)i * 4096);
		dlclose(plugin);
	}
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""


@pytest.mark.parametrize("how", ["fp", "auto", "unwind"])
def test_libraries_loaded_at_the_same_address_are_told_apart(world, compiled, build, tmp_path, how):
    """The second library comes to lie where the first was, its calls return to the very same
    addresses; each frame is in its own."""
    program = compiled(PLUGIN_USER, "-ldl")
    words = []
    for name in ("first", "other"):
        (tmp_path / f"{name}.c").write_text(PLUGIN.replace("NAME", name))
        library = build / "src" / "lib"
        run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-Wl,--build-id",
            tmp_path / f"{name}.c", "-o", tmp_path / f"lib{name}.so", "-I", ROOT / "include",
            "-L", library, "-lttmem", f"-Wl,-rpath,{library}")
        words += [tmp_path / f"lib{name}.so", name]
    env = {**world.env, "TTMEM": "1", "TTMEM_STACKS": how}
    process = subprocess.Popen([program, *words, *words], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    world.adopt(process)
    places = [process.stdout.readline() for _ in range(4)]
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    rows = sorted(world.json("buffers")["buffers"], key=lambda row: int(row["address"], 16))
    assert [row["stack"][0]["function"] for row in rows] == ["first", "other", "first", "other"]
    if len(set(places)) == 4:
        pytest.skip("the loader gave each another place")


def test_stacks_match_gdb(world, compiled):
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    program = compiled(C_SOURCE)
    env = {**world.env, "TTMEM": "0", "DEBUGINFOD_URLS": ""}
    text = run("gdb", "-batch", "-nx", "-ex", "set breakpoint pending on", "-ex",
               "break ttmem_alloc", "-ex", "run", "-ex", "bt", program, env=env,
               stdin=subprocess.DEVNULL)
    if "#1 " not in text:
        pytest.skip("gdb cannot run programs here")
    told = re.findall(r"^#[1-9] .*?(\w+) \(.*\) at .*:(\d+)$", text, re.MULTILINE)
    start(world, program)
    (row,) = world.json("buffers")["buffers"]
    assert [(name, str(line)) for name, line in frames(row)] == told


def test_the_daemon_names_the_frames_of_leaks(ttmemd, compiled):
    """Killed, so that nobody but the daemon is left to tell."""
    ttmemd.start()
    program = compiled(C_SOURCE)
    env = {**ttmemd.env, "TTMEM": "1", "TTMEM_STACKS": "fp"}
    process = ttmemd.adopt(
        subprocess.Popen(
            [program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.stdin.close()
    process.stdout.close()
    leak = ttmemd.wait_for_leak(process.pid)
    for row in (*leak["buffers"], *leak["sites"]):
        assert frames(row) == expected_c()
    assert f"app.c:{line_of(C_SOURCE, 'take')}" in ttmemd.run("leaks").stdout


FIBER = """\
#include <stdio.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>
#include <ucontext.h>

static ucontext_t outside, fiber;

static void inside(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 8192, 64, 0);
}

int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 4096, 64, 0);
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = malloc(65536);
	fiber.uc_stack.ss_size = 65536;
	fiber.uc_link = &outside;
	makecontext(&fiber, inside, 0);
	swapcontext(&outside, &fiber);
	puts("ready");
	fflush(stdout);
	return getchar() == 'x';
}
"""


def test_a_fiber_has_no_stack_and_that_is_told(world, compiled):
    process = start(world, compiled(FIBER))
    document = world.json("buffers")
    rows = sorted(document["buffers"], key=lambda row: int(row["address"], 16))
    assert rows[0]["stack"][0]["function"] == "main" and rows[1]["stack"] == []
    (note,) = document["notes"]
    assert note == f"pid {process.pid}: 1 event has no stack, see docs/stacks.md"
