# SPDX-License-Identifier: Apache-2.0
"""Stacks through code without frame pointers: by unwind tables, and by auto.

They are compared with what gdb prints for the same point.
"""

import re
import subprocess

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import HEAD, READY, frames, gdb_says, same, start, taken

pytestmark = pytest.mark.skipif(
    subprocess.run(["gcc", "-dumpmachine"], stdout=subprocess.PIPE, text=True, check=False)
    .stdout.split("-")[0] != "x86_64",
    reason="not x86-64",
)

HOWS = ("unwind", "auto")
OMIT = ("-O2", "-fomit-frame-pointer")
KEEP = ("-O2", "-fno-omit-frame-pointer")
LTO = ("-O3", "-flto", "-fomit-frame-pointer")

C_SOURCE = HEAD + """
NOINLINE void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, 0);
	KEEP();
}

static inline __attribute__((always_inline)) void wrap(unsigned long n)
{
	take(n);
	KEEP();
}

NOINLINE void sized(unsigned long n)
{
	volatile char *room = __builtin_alloca(n * 100);
	room[0] = 1;
	wrap(n);
	KEEP();
}

NOINLINE void aligned(unsigned long n)
{
	volatile char room[256] __attribute__((aligned(128)));
	room[n] = 1;
	sized(n);
	KEEP();
}

int main(void)
{
	aligned(1);
	return ready();
}
"""

CXX_SOURCE = """\
#include <cstdio>
#include <stdexcept>
#include <ttmem/ttmem.h>
#define KEEP() __asm__ volatile("")
#define NOINLINE __attribute__((noinline))
""" + READY + """
namespace model {
template <typename T> struct Layer {
	NOINLINE void place(T address)
	{
		ttmem_alloc(0, TTMEM_L1, address, 64, nullptr);
		KEEP();
	}
};
}

NOINLINE static void inner(unsigned long address)
{
	try {
		if (address)
			throw std::runtime_error("thrown");
	} catch (const std::exception &) {
		KEEP();
		throw;
	}
}

static inline __attribute__((always_inline)) void inlined(unsigned long address)
{
	model::Layer<unsigned long>().place(address);
	KEEP();
}

NOINLINE static void outer(unsigned long address)
{
	try {
		inner(address);
	} catch (const std::runtime_error &) {
		inlined(address);
		KEEP();
	}
}

int main()
{
	auto lambda = [](unsigned long address) NOINLINE {
		outer(address);
		KEEP();
	};
	lambda(4096);
	return ready();
}
"""

SORT_SOURCE = HEAD + """
static int compare(const void *a, const void *b)
{
	static int calls;
	if (calls++ == 0)
		ttmem_alloc(0, TTMEM_DRAM, 4096, 4096, 0);
	KEEP();
	return *(const int *)a - *(const int *)b;
}

NOINLINE void sort(int *numbers)
{
	qsort(numbers, 4, sizeof(int), compare);
	KEEP();
}

int main(void)
{
	int numbers[] = {4, 2, 3, 1};
	sort(numbers);
	return ready();
}
"""

# What is called back keeps frame pointers, what calls it uses the register for something else.
MIDDLE_SOURCE = """\
#define NOINLINE __attribute__((noinline))
NOINLINE static void deep(void (*back)(unsigned long), unsigned long n)
{
	DEEP
	back(n);
	__asm__ volatile("");
}

NOINLINE void middle(void (*back)(unsigned long), unsigned long n)
{
	deep(back, n);
	__asm__ volatile("");
}
"""

OUTSIDE_SOURCE = HEAD + """
void middle(void (*back)(unsigned long), unsigned long n);

NOINLINE static void take(unsigned long n)
{
	for (unsigned long i = 0; i < 3; i++)
		ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, 0);
	KEEP();
}

NOINLINE static void caller(unsigned long n)
{
	middle(take, n);
	KEEP();
}

int main(void)
{
	caller(1);
	return ready();
}
"""


@pytest.fixture
def compiled(build, tmp_path):
    """Compiles a source; the program or, with -shared, the library."""
    library = build / "src" / "lib"

    def compile_it(source, *flags, name="app", compiler="gcc"):
        path = tmp_path / (name + (".cpp" if compiler == "g++" else ".c"))
        path.write_text(source)
        run(compiler, "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-I", ROOT / "include",
            path, "-o", tmp_path / name, *flags, "-L", library, "-lttmem",
            f"-Wl,-rpath,{library}")
        return tmp_path / name

    return compile_it


@pytest.mark.parametrize(
    "flags", [OMIT, KEEP, LTO, ("-O0",), ("-O2", "-no-pie", "-fno-pie")], ids=" ".join
)
def test_unwound_c_matches_gdb(world, compiled, flags):
    program = compiled(C_SOURCE, *flags)
    told = gdb_says(world, program)
    assert [name for name, _ in told] == ["take", "wrap", "sized", "aligned", "main"]
    for how in HOWS:
        same(told, taken(world, program, how))


@pytest.mark.parametrize("flags", [OMIT, KEEP, LTO, ("-O0",)], ids=" ".join)
def test_unwound_cxx_matches_gdb(world, compiled, flags):
    program = compiled(CXX_SOURCE, *flags, compiler="g++")
    told = gdb_says(world, program)
    assert len(told) == 5
    for how in HOWS:
        same(told, taken(world, program, how))


def test_unwinding_through_libc_matches_gdb(world, compiled):
    """libc's own frames have no lines here, but they are there, and main is behind them."""
    program = compiled(SORT_SOURCE, *KEEP)
    told = gdb_says(world, program)
    for how in HOWS:
        found = taken(world, program, how)
        # gdb also shows a call that was made a jump, which has left nothing behind.
        assert len(told) - 1 <= len(found) <= len(told)
        ours = {"compare", "sort", "main"}
        assert [f for f in found if f[0] in ours] == [f for f in told if f[0] in ours]
        assert {f[0] for f in found} > ours


@pytest.mark.parametrize("deep", ["", '__asm__ volatile("xor %%ebp, %%ebp" ::: "rbp");',
                                  '__asm__ volatile("lea 64(%%rsp), %%rbp" ::: "rbp");'],
                         ids=["kept", "zero", "stack"])
def test_a_library_without_frame_pointers_is_unwound_by_its_tables(world, compiled, tmp_path, deep):
    """Frame pointers alone lose frames, and nobody would see that they are missing."""
    compiled(MIDDLE_SOURCE.replace("DEEP", deep), *OMIT, "-shared", "-fPIC", name="libmiddle.so")
    program = compiled(OUTSIDE_SOURCE, *KEEP, "-L", tmp_path, "-l:libmiddle.so",
                       f"-Wl,-rpath,{tmp_path}")
    told = gdb_says(world, program)
    assert [name for name, _ in told] == ["take", "deep", "middle", "caller", "main"]
    assert taken(world, program, "fp") != told
    same(told, taken(world, program, "unwind"))

    log = tmp_path / "debug.log"
    same(told, taken(world, program, "auto", TTMEM_DEBUG=str(log)))
    pinned = re.findall("no frame pointers in (.*), it is", log.read_text())
    # Each once, however many events there were.
    assert len(pinned) == len(set(pinned))
    assert str(tmp_path / "libmiddle.so") in pinned and "the program" not in pinned


def test_valid_frame_pointers_are_followed(world, compiled, tmp_path):
    """Nothing of the program is pinned, though its tables would do as well."""
    compiled(MIDDLE_SOURCE.replace("DEEP", ""), *KEEP, "-shared", "-fPIC", name="libmiddle.so")
    program = compiled(OUTSIDE_SOURCE, *KEEP, "-L", tmp_path, "-l:libmiddle.so",
                       f"-Wl,-rpath,{tmp_path}")
    told = gdb_says(world, program)
    log = tmp_path / "debug.log"
    same(told, taken(world, program, "auto", TTMEM_DEBUG=str(log)))
    pinned = re.findall("no frame pointers in (.*), it is", log.read_text())
    assert all("libc.so" in path for path in pinned), pinned


@pytest.mark.parametrize("how", HOWS)
def test_a_stripped_program_has_the_same_frames(world, compiled, how):
    program = compiled(C_SOURCE, *OMIT)
    run("strip", program)
    start(world, program, how)
    (row,) = world.json("buffers")["buffers"]
    texts = [frame["function"] for frame in row["stack"]]
    # Four calls and the program's start; what was inlined has no address of its own.
    assert len([text for text in texts if re.fullmatch(r"app\+0x[0-9a-f]+", text)]) == 5


LOADED_SOURCE = """\
#include <ttmem/ttmem.h>
static void take(unsigned long n)
{
	volatile char room[100];
	room[n % 100] = 1;
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 64, 0);
	room[n % 100] = 2;
}
__attribute__((constructor)) static void begin(void)
{
	take(1);
}
__attribute__((destructor)) static void end(void)
{
	take(3);
}
void call(void)
{
	take(2);
	__asm__ volatile("");
}
"""

LOADER_SOURCE = HEAD + """
#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	((void (*)(void))dlsym(library, "call"))();
	dlclose(library);
	ttmem_alloc(0, TTMEM_DRAM, 4 * 4096, 64, 0);
	KEEP();
	return ready() + argc;
}
"""


@pytest.mark.parametrize("how", HOWS)
def test_constructors_of_loaded_libraries_have_stacks(world, compiled, how):
    """Destructors as well: with the loader's frames up to main."""
    library = compiled(LOADED_SOURCE, *OMIT, "-shared", "-fPIC", name="libloaded.so")
    start(world, compiled(LOADER_SOURCE, *OMIT, "-ldl"), how, library, TTMEM_STACK_DEPTH="64")
    document = world.json("buffers")
    rows = sorted(document["buffers"], key=lambda row: int(row["address"], 16))
    begin, call, end, after = ([name for name, _ in frames(row)] for row in rows)
    assert begin[:2] == ["take", "begin"] and begin[-1] == "main" and len(begin) > 4
    assert end[:2] == ["take", "end"] and end[-1] == "main" and len(end) > 4
    assert call == ["take", "call", "main"] and after == ["main"] and document["notes"] == []


FIBER_SOURCE = HEAD + """
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
	ttmem_alloc(0, TTMEM_DRAM, 12288, 64, 0);
	return ready();
}
"""


@pytest.mark.parametrize("how", HOWS)
def test_a_fiber_has_no_stack_and_that_is_told(world, compiled, how):
    process = start(world, compiled(FIBER_SOURCE, *OMIT), how)
    document = world.json("buffers")
    rows = sorted(document["buffers"], key=lambda row: int(row["address"], 16))
    assert [[name for name, _ in frames(row)] for row in rows] == [["main"], [], ["main"]]
    assert document["notes"] == [
        f"pid {process.pid}: 1 event has no stack, see docs/stacks.md"]
