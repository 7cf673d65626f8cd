# SPDX-License-Identifier: Apache-2.0
"""Before main(): constructors of the program have stacks, those of libraries are called by the loader and have none."""

import re
import subprocess

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import HEAD, frames, start

HOWS = ("fp", "auto", "unwind")

# Two constructors, then main(): the same function in all.
SOURCE = HEAD + """
NOINLINE void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, 0);
	KEEP();
}

__attribute__((constructor(200))) static void first(void)
{
	take(1);
}

__attribute__((constructor)) static void second(void)
{
	take(2);
}

int main(void)
{
	take(3);
	return ready();
}
"""

BEFORE_MAIN = [["take", "first"], ["take", "second"], ["take", "main"]]

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


def check_constructor(world, process, how):
    """Inside the loader a chain of frame pointers is not certain enough to look up files by it."""
    stacks, notes = rows_of(world)
    assert [names[:2] for names in stacks[:3]] == BEFORE_MAIN
    if how == "fp":
        assert stacks[3] == []
        assert notes == [f"pid {process.pid}: 1 event has no stack, see docs/stacks.md"]
    else:
        assert stacks[3][0] == "begin" and len(stacks[3]) > 3 and notes == []


@pytest.mark.parametrize("by_name", (False, True))
@pytest.mark.parametrize("how", HOWS)
def test_constructors_of_libraries_that_come_with_it_have_stacks(world, build, tmp_path, how, by_name):
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}:{tmp_path}"]
    (tmp_path / "early.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-shared", "-fPIC", tmp_path / "early.c",
        "-o", tmp_path / "libearly.so", *ours)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", tmp_path / "app.c",
        "-o", tmp_path / "app", "-L", tmp_path, "-Wl,--no-as-needed", "-learly", *ours)
    words = [loader_of(tmp_path / "app")] if by_name else []
    command, *rest = [*words, tmp_path / "app"]
    process = start(world, command, how, *rest)
    check_constructor(world, process, how)


LOADS = SOURCE.replace("int main(void)\n{", """#include <dlfcn.h>
int main(int count, char **words)
{
	if (count != 2 || !dlopen(words[1], RTLD_NOW))
		return 2;""")


@pytest.mark.parametrize("how", HOWS)
def test_constructors_of_libraries_that_come_later_have_stacks(world, build, tmp_path, how):
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}"]
    (tmp_path / "late.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(LOADS)
    for source, out, flags in (("late.c", "late.so", ["-shared", "-fPIC"]), ("app.c", "app", [])):
        run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags,
            tmp_path / source, "-o", tmp_path / out, *ours)
    process = start(world, tmp_path / "app", how, tmp_path / "late.so")
    check_constructor(world, process, how)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("by_name", (False, True))
def test_constructors_of_the_program_have_stacks(world, program, how, by_name):
    """Also where the kernel has started the loader, and the loader the program."""
    words = [loader_of(program), program] if by_name else [program]
    start(world, words[0], how, *words[1:])
    stacks, notes = rows_of(world)
    assert [names[:2] for names in stacks] == BEFORE_MAIN
    assert notes == []
    assert {row["stack"][0]["module"] for row in world.json("buffers")["buffers"]} == {"app"}


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
    """Its libc believes in other threads."""
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
    assert stacks[0][0] == "begin" and stacks[0][-1] == "main" and stacks[1] == ["later"]


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
