# SPDX-License-Identifier: Apache-2.0
"""Every frame of every stack, compared with what gdb finds at the same call.

One program takes a stack in each situation that makes unwinding difficult; it is compiled in many ways.
"""

import shutil
import subprocess

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import READY, start

SOURCE = r"""
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <ttmem/ttmem.h>
#include <unistd.h>
#define KEEP() __asm__ volatile("")
#define NOINLINE __attribute__((noinline))
""" + READY + r"""
NOINLINE static void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n, 64, nullptr);
	KEEP();
}

static inline void inlined(unsigned long n)
{
	take(n);
	KEEP();
}

NOINLINE static void plain(unsigned long n)
{
	volatile char room[200];
	room[n] = 1;
	inlined(n);
	KEEP();
}

NOINLINE static void sized(unsigned long n)
{
	volatile char *room = static_cast<char *>(__builtin_alloca(n * 100));
	room[0] = 1;
	inlined(n);
	KEEP();
}

NOINLINE static void aligned(unsigned long n)
{
	volatile char room[256] __attribute__((aligned(128)));
	room[n] = 1;
	sized(n);
	KEEP();
}

/* Leaves nothing behind where it becomes a jump. */
NOINLINE static void jumps(unsigned long n)
{
	plain(n + 1);
}

static unsigned long signalled;

NOINLINE static void handler(int)
{
	plain(signalled);
	KEEP();
}

/* In libc, and in code without a frame. */
NOINLINE static void raises(unsigned long n)
{
	signalled = n;
	raise(SIGUSR1);
	KEEP();
}

NOINLINE static void interrupts(unsigned long n)
{
	signalled = n;
#if defined(__x86_64__)
	long result = SYS_tgkill;
	__asm__ volatile("syscall" : "+a"(result) : "D"(getpid()), "S"(gettid()), "d"(SIGUSR1)
			 : "rcx", "r11", "memory");
#else
	raise(SIGUSR1);
#endif
}

struct Holder {
	unsigned long n;
	NOINLINE ~Holder()
	{
		plain(n);
		KEEP();
	}
};

NOINLINE static void throws(unsigned long n)
{
	Holder holder{n};
	if (n)
		throw std::runtime_error("in flight");
	KEEP();
}

NOINLINE static void catches(unsigned long n)
{
	try {
		throws(n);
	} catch (const std::exception &) {
		plain(n + 1);
		KEEP();
	}
}

NOINLINE static void loads(const char *path, unsigned long n)
{
	void *library = dlopen(path, RTLD_NOW);
	auto call = reinterpret_cast<void (*)(void (*)(unsigned long), unsigned long)>(
		dlsym(library, "plugin"));
	call(plain, n);
	dlclose(library);
	KEEP();
}

static int compare(const void *a, const void *b)
{
	static int calls;
	if (calls++ == 0)
		plain(30);
	KEEP();
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

NOINLINE static void *thread(void *)
{
	plain(40);
	KEEP();
	return nullptr;
}

[[noreturn]] NOINLINE static void ends()
{
	plain(50);
	ready();
	std::_Exit(0);
}

int main(int, char **argv)
{
	static char memory[65536];
	stack_t other = {};
	struct sigaction action = {};
	int numbers[] = {4, 2, 3, 1};
	pthread_t worker;

	plain(1);
	aligned(2);
	jumps(3);
	action.sa_handler = handler;
	sigaction(SIGUSR1, &action, nullptr);
	raises(5);
	interrupts(6);
	other.ss_sp = memory;
	other.ss_size = sizeof(memory);
	sigaltstack(&other, nullptr);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	raises(7);
	catches(10);
	loads(argv[1], 20);
	loads(argv[2], 21);
	qsort(numbers, 4, sizeof(int), compare);
	pthread_create(&worker, nullptr, thread, nullptr);
	pthread_join(worker, nullptr);
	std::set_terminate(ends);
	throw 1;
}
"""

PLUGIN = """
__attribute__((noinline)) static void NAME(void (*back)(unsigned long), unsigned long n)
{
	volatile char room[ROOM];
	room[n] = 1;
	back(n);
	__asm__ volatile("");
}

void plugin(void (*back)(unsigned long), unsigned long n)
{
	NAME(back, n);
	__asm__ volatile("");
}
"""

# At every call of ttmem_alloc(): the address, then the frames outside it.
GDB = """
import gdb
gdb.execute("set breakpoint pending on")
gdb.execute("set width 0")
gdb.execute("set backtrace past-main on")
gdb.execute("handle SIGUSR1 nostop noprint pass")
gdb.execute("break ttmem_alloc")
gdb.execute("run")
while gdb.selected_inferior().pid:
    frame = gdb.newest_frame()
    print("STACK", int(gdb.parse_and_eval("$rdx" if "x86" in frame.architecture().name() else "$x2")))
    frame = frame.older()
    while frame:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.INLINE_FRAME):
            place = frame.find_sal()
            mine = place.symtab and place.symtab.filename.rsplit("/", 1)[-1] in ("app.cpp", "one.c", "two.c")
            print("FRAME", frame.name().split("(")[0] if mine else "-", place.line if mine else 0)
        frame = frame.older()
    gdb.execute("continue")
"""

OMIT = "-fomit-frame-pointer"
KEEP = "-fno-omit-frame-pointer"
WAYS = [("-O0",), ("-O1", OMIT), ("-O1", KEEP), ("-O2", OMIT), ("-O2", KEEP), ("-O3", OMIT), ("-O3", "-flto", OMIT),
        ("-Os", OMIT), ("-O2", "-fno-plt", OMIT), ("-O2", "-Wl,-z,lazy", KEEP)]  # fmt: skip
ADDRESSES = [1, 2, 4, 5, 6, 7, 10, 11, 20, 21, 30, 40, 50]


def gdb_says(world, tmp_path, command):
    """{address: frames}"""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    script = tmp_path / "frames.py"
    script.write_text(GDB)
    env = {**world.env, "TTMEM": "0", "DEBUGINFOD_URLS": ""}
    text = run("gdb", "-batch", "-nx", "-x", script, "--args", *command, env=env, stdin=subprocess.DEVNULL)
    stacks = {}
    for line in text.splitlines():
        kind, *words = line.split()[:3] or [""]
        if kind == "STACK":
            frames = stacks[int(words[0])] = []
        elif kind == "FRAME":
            frames.append((words[0], int(words[1])))
    if not stacks:
        pytest.skip("gdb cannot run programs here")
    return stacks


def ours(row):
    frames = []
    for frame in row["stack"]:
        file = (frame["file"] or "").rsplit("/", 1)[-1]
        mine = file in ("app.cpp", "one.c", "two.c")
        frames.append((frame["function"].split("(")[0] if mine else "-", frame["line"] if mine else 0))
    return frames


@pytest.mark.parametrize("flags", WAYS, ids=" ".join)
def test_every_frame_is_as_gdb_says(world, build, tmp_path, flags):
    for name, size in (("one", 100), ("two", 300)):
        path = tmp_path / f"{name}.c"
        path.write_text(PLUGIN.replace("NAME", name).replace("ROOM", str(size)))
        run("gcc", "-g", "-shared", "-fPIC", path, "-o", tmp_path / f"{name}.so", *flags)
    (tmp_path / "app.cpp").write_text(SOURCE)
    library = build / "src" / "lib"
    run("g++", "-g", "-I", ROOT / "include", tmp_path / "app.cpp", "-o", tmp_path / "app", *flags,
        "-L", library, "-lttmem", "-ldl", "-pthread", f"-Wl,-rpath,{library}")
    command = [tmp_path / "app", tmp_path / "one.so", tmp_path / "two.so"]
    told = gdb_says(world, tmp_path, command)
    assert sorted(told) == ADDRESSES
    for how in ("auto", "unwind"):
        process = start(world, command[0], how, *command[1:], TTMEM_STACK_DEPTH="64")
        rows = {int(row["address"], 16): row for row in world.json("buffers")["buffers"]}
        process.kill()
        process.wait()
        assert sorted(rows) == ADDRESSES
        for address in ADDRESSES:
            assert ours(rows[address]) == told[address], (how, address)
