# SPDX-License-Identifier: Apache-2.0
"""Before main(): in constructors of the program and of its libraries nothing is unwound."""

import ctypes.util
import re
import subprocess

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import HEAD, frames, start

pytestmark = pytest.mark.skipif(
    subprocess.run(["gcc", "-dumpmachine"], stdout=subprocess.PIPE, text=True, check=False)
    .stdout.split("-")[0] != "x86_64" or not ctypes.util.find_library("unwind-x86_64"),
    reason="no libunwind, or not x86-64",
)

# Two constructors, then main(): the same function in all. It does not get ready if libunwind is there too early.
SOURCE = HEAD + """
#include <string.h>
NOINLINE void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, 0);
	KEEP();
}

static int too_early;

static int has_libunwind(void)
{
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	int found = 0;
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "libunwind") != NULL;
	fclose(maps);
	return found;
}

__attribute__((constructor(200))) static void first(void)
{
	take(1);
	too_early |= has_libunwind();
}

__attribute__((constructor)) static void second(void)
{
	take(2);
	too_early |= has_libunwind();
}

int main(void)
{
	take(3);
	return too_early ? 1 : ready();
}
"""

WAYS = {"pie": ("-fPIE", "-pie"), "no-pie": ("-fno-pie", "-no-pie"), "now": ("-Wl,-z,now", "-fcf-protection"),
        "archive": ()}


@pytest.fixture(params=WAYS)
def program(build, tmp_path, request):
    library = build / "src" / "lib"
    ours = ["-L", library, "-lttmem", f"-Wl,-rpath,{library}"]
    if request.param == "archive":
        if not (library / "libttmem.a").exists():
            pytest.skip("libttmem.a is not built")
        ours = [library / "libttmem.a"]
    (tmp_path / "app.c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id",
        "-I", ROOT / "include", *WAYS[request.param], tmp_path / "app.c", "-o",
        tmp_path / "app", *ours)
    return tmp_path / "app"


def rows_of(world):
    document = world.json("buffers")
    rows = sorted(document["buffers"], key=lambda row: int(row["address"], 16))
    return [[name for name, _ in frames(row)] for row in rows], document["notes"]


def loader_of(program):
    (path,) = re.findall(r"interpreter: (.*)\]", run("readelf", "-lW", program))
    return path


LIBRARY = """
#include <ttmem/ttmem.h>
__attribute__((constructor)) static void begin(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 4 * 4096, 4096, 0);
}
"""


@pytest.mark.parametrize("by_name", (False, True))
@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_nothing_is_unwound_in_libraries_that_come_with_it(world, build, tmp_path, how, by_name):
    """The program's constructor, which is the next, would see libunwind."""
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}:{tmp_path}"]
    (tmp_path / "early.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-shared", "-fPIC", tmp_path / "early.c", "-o", tmp_path / "libearly.so", *ours)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", tmp_path / "app.c", "-o", tmp_path / "app",
        "-L", tmp_path, "-Wl,--no-as-needed", "-learly", *ours)
    words = [loader_of(tmp_path / "app")] if by_name else []
    command, *rest = [*words, tmp_path / "app"]
    process = start(world, command, how, *rest)
    stacks, notes = rows_of(world)
    assert stacks == [[], [], ["take", "main"], []]
    assert notes == [f"pid {process.pid}: 3 events have no stack, see docs/stacks.md"]


LOADS = SOURCE.replace("int main(void)\n{", """#include <dlfcn.h>
int main(int count, char **words)
{
	if (count != 2 || !dlopen(words[1], RTLD_NOW))
		return 2;
	too_early |= has_libunwind();""")


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_nothing_is_unwound_in_libraries_that_come_later(world, build, tmp_path, how):
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}"]
    (tmp_path / "late.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(LOADS)
    for source, out, flags in (("late.c", "late.so", ["-shared", "-fPIC"]), ("app.c", "app", [])):
        run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags,
            tmp_path / source, "-o", tmp_path / out, *ours)
    process = start(world, tmp_path / "app", how, tmp_path / "late.so")
    stacks, notes = rows_of(world)
    assert stacks == [[], [], ["take", "main"], []]
    assert notes == [f"pid {process.pid}: 3 events have no stack, see docs/stacks.md"]


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_nothing_is_unwound_before_main(world, program, how):
    """Neither is libunwind loaded for it; that there are no stacks is counted."""
    process = start(world, program, how)
    stacks, notes = rows_of(world)
    assert stacks == [[], [], ["take", "main"]]
    assert notes == [f"pid {process.pid}: 2 events have no stack, see docs/stacks.md"]


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_a_program_started_by_the_loader_is_found(world, program, how):
    """What the kernel has started is then the loader: the program is found all the same."""
    process = start(world, loader_of(program), how, program)
    stacks, notes = rows_of(world)
    assert stacks == [[], [], ["take", "main"]]
    assert notes == [f"pid {process.pid}: 2 events have no stack, see docs/stacks.md"]
    (row,) = [row for row in world.json("buffers")["buffers"] if row["stack"]]
    assert row["stack"][0]["module"] == "app"


APART = HEAD.replace("#include <stdio.h>", "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>") + """
int main(int count, char **words)
{
	void *library = count == 2 ? dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW) : NULL;
	if (!library)
		return 2;
	((void (*)(void))dlsym(library, "later"))();
	return ready();
}
"""


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_a_constructor_in_another_linker_namespace_does_not_hang(world, build, tmp_path, how):
    """Its libc believes in other threads: what loads libunwind must not be a thread that nobody wakes up."""
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}"]
    later = "void later(void) { ttmem_alloc(0, TTMEM_DRAM, 8 * 4096, 4096, 0); __asm__ volatile(\"\"); }\n"
    early = LIBRARY.replace("4096, 0);", "4096, 0); __asm__ volatile(\"\"); /* no jump: a frame of its own */")
    (tmp_path / "apart.c").write_text(early + later)
    (tmp_path / "app.c").write_text(APART)
    run("gcc", "-O2", "-g", "-fomit-frame-pointer", "-shared", "-fPIC", tmp_path / "apart.c", "-o",
        tmp_path / "apart.so", *ours)
    run("gcc", "-O2", "-g", "-I", ROOT / "include", tmp_path / "app.c", "-o", tmp_path / "app")
    start(world, tmp_path / "app", how, tmp_path / "apart.so")
    stacks, _ = rows_of(world)
    assert stacks == [[], ["later"]]


# As tools have it that want to come before everything.
STAND_IN = """
#define _GNU_SOURCE
#include <dlfcn.h>

typedef int (*begin)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
		     void (*)(void), void *);

int __libc_start_main(int (*main)(int, char **, char **), int count, char **words, void (*init)(void),
		      void (*fini)(void), void (*loader)(void), void *end)
{
	return ((begin)dlsym(RTLD_NEXT, "__libc_start_main"))(main, count, words, init, fini, loader, end);
}
"""


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_an_interposed_libc_start_main_still_gives_stacks(world, build, tmp_path, how):
    """Then constructors of the program cannot be told from main(), and have stacks as main() has."""
    library = build / "src" / "lib"
    (tmp_path / "app.c").write_text(SOURCE.replace("return too_early ? 1 :", "return"))
    (tmp_path / "before.c").write_text(STAND_IN)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-I", ROOT / "include",
        tmp_path / "app.c", "-o", tmp_path / "app", "-L", library, "-lttmem", f"-Wl,-rpath,{library}")
    run("gcc", "-O2", "-shared", "-fPIC", tmp_path / "before.c", "-o", tmp_path / "before.so")
    start(world, tmp_path / "app", how, LD_PRELOAD=str(tmp_path / "before.so"))
    stacks, notes = rows_of(world)
    assert [names[:2] for names in stacks] == [["take", "first"], ["take", "second"], ["take", "main"]]
    assert notes == []


# Without frame pointers the register is anybody's: here it points to data that could be a frame, of the loader's.
DATA = HEAD + """
extern void *__tls_get_addr(void *);
struct pair { void *first, *second; };
NOINLINE void use(struct pair *pair) { __asm__ volatile("" : : "r"(pair) : "memory"); }
NOINLINE void take(void) { ttmem_alloc(0, TTMEM_DRAM, 4096, 4096, 0); KEEP(); }
NOINLINE void victim(void *second)
{
	struct pair pair = {0, second};
	register struct pair *held __asm__("rbp") = &pair;
	__asm__ volatile("" : "+r"(held) : : "memory");
	take();
	__asm__ volatile("" : "+r"(held) : : "memory");
	use(held);
}
int main(void) { victim((void *)__tls_get_addr); return ready(); }
"""


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_data_is_not_taken_for_a_constructor(world, build, tmp_path, how):
    library = build / "src" / "lib"
    (tmp_path / "app.c").write_text(DATA)
    run("gcc", "-O2", "-g", "-fomit-frame-pointer", "-I", ROOT / "include", tmp_path / "app.c", "-o",
        tmp_path / "app", "-L", library, "-lttmem", f"-Wl,-rpath,{library}")
    start(world, tmp_path / "app", how)
    assert rows_of(world) == ([["take", "victim", "main"]], [])


def test_frame_pointers_work_before_main(world, program):
    start(world, program, "fp")
    stacks, notes = rows_of(world)
    assert [names[:2] for names in stacks] == [["take", "first"], ["take", "second"], ["take", "main"]]
    assert notes == []
