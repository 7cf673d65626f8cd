# SPDX-License-Identifier: Apache-2.0
"""Before main(): in constructors of the program and of its libraries nothing is unwound."""

import ctypes.util
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


LIBRARY = """
#include <ttmem/ttmem.h>
__attribute__((constructor)) static void begin(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 4 * 4096, 4096, 0);
}
"""


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_nothing_is_unwound_in_libraries_that_come_with_it(world, build, tmp_path, how):
    """The program's constructor, which is the next, would see libunwind."""
    library = build / "src" / "lib"
    ours = ["-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}:{tmp_path}"]
    (tmp_path / "early.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-shared", "-fPIC", tmp_path / "early.c", "-o", tmp_path / "libearly.so", *ours)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", tmp_path / "app.c", "-o", tmp_path / "app",
        "-L", tmp_path, "-Wl,--no-as-needed", "-learly", *ours)
    process = start(world, tmp_path / "app", how)
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


def test_frame_pointers_are_no_unwinding(world, program):
    start(world, program, "fp")
    stacks, notes = rows_of(world)
    assert [names[:2] for names in stacks] == [["take", "first"], ["take", "second"], ["take", "main"]]
    assert notes == []
