# SPDX-License-Identifier: Apache-2.0
"""libttmem.a inside programs and libraries: the program's frames, never ours, and the same books.

Stacks are compared with what gdb prints for the same point.
"""

import json
import os
import re
import signal

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import HEAD, frames, gdb_says, same, start, taken
from world import check_schema, descriptors

STATIC = ("-static", "-static-pie")
KINDS = (*STATIC, "program", "library")

# gcc gives a program of kind "-static" no table of its unwind tables.
HOWS = {kind: ("fp", "auto", "unwind") for kind in KINDS}
HOWS["-static"] = ("fp", "auto")

PART = """\
#include <ttmem/ttmem.h>
#define KEEP() __asm__ volatile("")

__attribute__((noinline)) void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, "taken");
	KEEP();
}

static inline __attribute__((always_inline)) void wrap(unsigned long n)
{
	take(n);
	KEEP();
}

__attribute__((noinline)) void load(unsigned long n)
{
	wrap(n);
	KEEP();
}
"""

PROGRAM = HEAD + """
void load(unsigned long n);

NOINLINE void caller(unsigned long n)
{
	load(n);
	KEEP();
}

int main(void)
{
	caller(1);
	return ready();
}
"""


@pytest.fixture
def linked(build, tmp_path):
    """Call as linked(kind, source, ...): a program with PART and libttmem.a, or a library of both."""
    archive = build / "src" / "lib" / "libttmem.a"
    if not archive.exists():
        pytest.skip("libttmem.a is not built")
    flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
             "-Wl,--build-id", "-Wl,--fatal-warnings", "-I", ROOT / "include"]

    def link(kind, source=PROGRAM, *more):
        part, app = tmp_path / "part.c", tmp_path / "app.c"
        part.write_text(PART)
        app.write_text(source)
        if kind == "library":
            library = tmp_path / "libpart.so"
            run("gcc", *flags, "-shared", "-fPIC", part, archive, "-o", library)
            inside = [library, f"-Wl,-rpath,{tmp_path}"]
        else:
            inside = [part, archive]
            flags.extend([kind] if kind in STATIC else [])
        run("gcc", *flags, app, *inside, *more, "-o", tmp_path / "app")
        return tmp_path / "app"

    return link


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_as_gdb_says(world, linked, kind):
    program = linked(kind)
    told = gdb_says(world, program)
    assert [name for name, _ in told] == ["take", "wrap", "load", "caller", "main"]
    for how in HOWS[kind]:
        same(told, taken(world, program, how))


def test_without_tables_there_is_no_unwinding(world, linked, tmp_path):
    """auto trusts frame pointers then; unwind has none. Both are told."""
    program = linked("-static")
    log = tmp_path / "debug.log"
    process = start(world, program, "unwind", TTMEM_DEBUG=str(log))
    document = world.json("buffers")
    (row,) = document["buffers"]
    assert row["stack"] == [] and row["size"] == 4096
    assert document["notes"] == [f"pid {process.pid}: 1 event has no stack, see docs/stacks.md"]
    assert "no unwind tables: the program was linked without --eh-frame-hdr" in log.read_text()
    (finding,) = [f for f in json.loads(world.run("doctor", "--json").stdout)["findings"]
                  if f["id"] == "stacks-lost"]
    assert finding["pid"] == process.pid and "--eh-frame-hdr" in finding["fix"]


def names_at(program, places):
    """The functions, those that were inlined too. What is returned to may belong to the next one."""
    text = run("addr2line", "-f", "-i", "-e", program, *(hex(place - 1) for place in places))
    return text.splitlines()[::2]


@pytest.mark.parametrize("kind", [*STATIC, "program"])
def test_a_stripped_one_has_module_and_offset(world, linked, tmp_path, kind):
    program = linked(kind)
    whole = tmp_path / "whole"
    whole.write_bytes(program.read_bytes())
    run("strip", program)
    start(world, program, "fp")
    (row,) = world.json("buffers")["buffers"]
    texts = [frame["function"] for frame in row["stack"]]
    offsets = [re.fullmatch(r"app\+0x([0-9a-f]+)", text) for text in texts[:4]]
    assert all(offsets), texts
    assert names_at(whole, [int(offset.group(1), 16) for offset in offsets]) == [
        "take", "wrap", "load", "caller", "main"]


# 3 taken and 1 given back before the fork; the child takes 2 in its own book and gives back none.
FAMILY = HEAD + """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
void load(unsigned long n);

int main(void)
{
	load(1);
	load(2);
	load(3);
	ttmem_free(0, TTMEM_DRAM, 2 * 4096);
	if (fork() == 0) {
		load(7);
		load(8);
		raise(SIGKILL);
	}
	wait(NULL);
	raise(SIGKILL);
	return ready();
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_totals_are_exact_after_fork_and_kill(world, linked, tmp_path, kind):
    report = tmp_path / "report.json"
    env = {**world.env, "TTMEM_STACKS": "fp"}
    done = world.run("run", "--fail-on-leak", "--json", report, "--", linked(kind, FAMILY), env=env)
    assert done.returncode == 128 + signal.SIGKILL
    document = check_schema(json.loads(report.read_text()))
    assert document["exact"] and (document["leaked_bytes"], document["leaked_buffers"]) == (16384, 4)
    assert sorted(sorted(int(row["address"], 16) // 4096 for row in process["buffers"])
                  for process in document["processes"]) == [[1, 3], [7, 8]]
    for process in document["processes"]:
        assert process["how"] == "died" and process["exact"]
        for row in process["buffers"]:
            assert [name for name, _ in frames(row)] == ["take", "wrap", "load", "main"]


# In a child of a process with threads, and in one of its threads.
THREADS = HEAD + """
#include <pthread.h>
#include <unistd.h>
void load(unsigned long n);
static pthread_barrier_t met;

NOINLINE void *thread(void *number)
{
	load((unsigned long)number);
	pthread_barrier_wait(&met);
	KEEP();
	return NULL;
}

int main(void)
{
	pthread_t threads[8];

	pthread_barrier_init(&met, NULL, 9);
	for (unsigned long i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
	pthread_barrier_wait(&met);
	if (fork() == 0) {
		load(100);
		return ready();
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pause();
	return 0;
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_their_child_have_stacks(world, linked, kind):
    process = start(world, linked(kind, THREADS), "fp")
    (child,) = map(int, open(f"/proc/{process.pid}/task/{process.pid}/children",
                             encoding="ascii").read().split())
    world.show(child)
    try:
        rows = world.json("buffers")["buffers"]
        assert sorted((row["pid"], int(row["address"], 16) // 4096) for row in rows) == sorted(
            [(process.pid, n) for n in range(1, 9)] + [(child, 100)])
        for row in rows:
            names = [name for name, _ in frames(row)]
            assert names[:4] == ["take", "wrap", "load", "main" if row["pid"] == child else "thread"]
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_static_program_with_tracking_off_has_no_book(world, linked, kind):
    program = linked(kind)
    for settings in ({"TTMEM": "0"}, {"TTMEM": "0", "TT_ALLOC_TRACKING_ENABLED": "1"}):
        process = start(world, program, "fp", **settings)
        assert "memfd" not in descriptors(process.pid)
    process = start(world, program, "fp")
    assert "memfd:ttmem" in descriptors(process.pid)


# Names that the library has inside. If one of these were called instead, that would be seen.
NAMES = ("gate_open", "lock_take", "modules_open", "stack_take", "thread_self", "linked_code",
         "writer_reject", "private_map")


@pytest.mark.parametrize("kind", KINDS)
def test_internal_symbols_do_not_clash_with_the_application(world, linked, kind):
    theirs = "".join(f"void {name}(void) {{ abort(); }}\n" for name in NAMES)
    program = linked(kind, PROGRAM.replace("int main", theirs + "int main"), "-rdynamic")
    found = taken(world, program, "fp")
    assert [name for name, _ in found] == ["take", "wrap", "load", "caller", "main"]


# A thread that has had stacks and phases ends when the library that took them was closed.
CLOSED = HEAD + """
#include <dlfcn.h>
#include <pthread.h>
static pthread_barrier_t met;

static void *thread(void *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*load)(unsigned long) = (void (*)(unsigned long))dlsym(library, "load");
	void (*push)(const char *) = (void (*)(const char *))dlsym(library, "ttmem_phase_push");

	push("phase");
	load(5);
	dlclose(library);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id;

	pthread_create(&id, NULL, thread, argv[argc - 1]);
	pthread_join(id, NULL);
	return ready();
}
"""


def test_a_closed_library_with_ttmem_inside_stays_loaded(world, linked, tmp_path):
    linked("library")
    (tmp_path / "closed.c").write_text(CLOSED)
    program = tmp_path / "closed"
    run("gcc", "-g", "-pthread", "-I", ROOT / "include", tmp_path / "closed.c", "-o", program)
    start(world, program, "auto", tmp_path / "libpart.so")
    (row,) = world.json("buffers")["buffers"]
    assert row["phase"] == "phase"
    assert [name for name, _ in frames(row)][:4] == ["take", "wrap", "load", "thread"]


@pytest.mark.legacy
def test_the_old_log_has_module_and_offset(world, linked, tmp_path):
    """There are no exported names in a static program."""
    log = tmp_path / "buffers.log"
    start(world, linked("-static"), "fp", TT_BUFFER_DEBUG_LOG="1", TT_BUFFER_DEBUG_LOG_FILE=str(log),
          TT_ALLOC_STACK_TRACE="1")
    places = re.findall(r"app\(\+0x([0-9a-f]+)\)", log.read_text())
    # From where the file begins, as dladdr() tells it: that is where such programs lie.
    assert names_at(tmp_path / "app", [0x400000 + int(place, 16) for place in places[:4]]) == [
        "take", "wrap", "load", "caller", "main"]


# A constructor of the program's, which may come before ours.
EARLY = PROGRAM.replace("int main", """
__attribute__((constructor)) static void early(void)
{
	load(9);
}

int main""")


@pytest.mark.parametrize("how", ("fp", "auto"))
@pytest.mark.parametrize("kind", STATIC)
def test_constructors_of_a_static_program_have_stacks(world, linked, kind, how):
    """No loader calls them, and nothing is unwound."""
    start(world, linked(kind, EARLY), how)
    rows = {int(row["address"], 16) // 4096: row for row in world.json("buffers")["buffers"]}
    assert [name for name, _ in frames(rows[9])][:4] == ["take", "wrap", "load", "early"]
    assert [name for name, _ in frames(rows[1])][-1] == "main"


def test_exec_of_a_static_program_ends_its_book(world, linked, tmp_path):
    """exec: the old book ends, the new program has its own."""
    source = PROGRAM.replace("int main(void)\n{", """#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc == 1) {
		load(3);
		execl("/proc/self/exe", argv[0], "again", NULL);
	}""")
    process = start(world, linked("-static", source), "fp")
    (row,) = world.json("buffers")["buffers"]
    assert (row["pid"], int(row["address"], 16)) == (process.pid, 4096)
