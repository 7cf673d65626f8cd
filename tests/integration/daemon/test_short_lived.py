# SPDX-License-Identifier: Apache-2.0
"""Names of frames of programs that end right after their first event, wherever the daemon tells of it."""

import json
import os
import subprocess

import pytest

from collector import attributes, collector  # noqa: F401 (fixture)
from conftest import LIMIT, ROOT
from cxx import run
from world import descriptors, wait_for

SOURCE = """
#include <ttmem/ttmem.h>
#include <unistd.h>

__attribute__((noinline)) static void grab(void)
{
	ttmem_alloc_failed(0, TTMEM_DRAM, 1 << 20, 4096);
	__asm__ volatile("");
}

__attribute__((noinline)) static void keep(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "left");
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	keep();
	grab();
	if (argc > 1)
		(void)unlink(argv[1]);
	return 0;
}
"""
OTHER = "int grab, keep, more;\nint main(void) { return 0; }\n"


@pytest.fixture
def compiled(build, tmp_path):
    """Compiles a source with frame pointers; the program."""

    def compile_it(source, *flags):
        (tmp_path / "app.c").write_text(source)
        library = build / "src" / "lib"
        run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags,
            tmp_path / "app.c", "-o", tmp_path / "app",
            "-I", ROOT / "include", "-L", library, "-lttmem", f"-Wl,-rpath,{library}")  # fmt: skip
        return tmp_path / "app"

    return compile_it


def execute(ttmemd, program, *args):
    """Runs the program to its end; its number."""
    env = {**ttmemd.env, "TTMEM": "1", "TTMEM_STACKS": "fp"}
    process = subprocess.Popen([program, *args], env=env)
    assert process.wait(timeout=LIMIT) == 0
    return process.pid


def failure(ttmemd, pid):
    rows = ttmemd.json("incidents")["incidents"]
    return next((r for r in rows if r["kind"] == "alloc_failed" and r["pid"] == pid), None)


def functions(row):
    """The two innermost functions, with the file."""
    return [(frame["function"], os.path.basename(frame["file"] or "")) for frame in row["stack"][:2]]


def records(collector, kind):  # noqa: F811
    return [
        json.loads(record["body"]["stringValue"])
        for record in collector.incidents()
        if attributes(record)["ttmem.kind"] == kind
    ]


@pytest.mark.parametrize("how", ["stays", "deletes itself", "deleted", "replaced"])
@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_a_program_that_has_ended_has_names(ttmemd, compiled, collector, how, build_id):  # noqa: F811
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1d")
    flag = f"-Wl,--build-id={build_id}"
    program = compiled(SOURCE, flag)
    pid = execute(ttmemd, program, *([program] if how == "deletes itself" else []))
    if how in ("deleted", "replaced"):
        os.unlink(program)
    if how == "replaced":
        compiled(OTHER, flag)
    grabbed, kept = ([(name, "app.c"), ("main", "app.c")] for name in ("grab", "keep"))
    row = wait_for(lambda: failure(ttmemd, pid), "the incident")
    assert functions(row["second"]) == grabbed
    (buffer,) = ttmemd.wait_for_leak(pid)["buffers"]
    assert functions(buffer) == kept
    (record,) = wait_for(lambda: records(collector, "alloc_failed"), "the record of the failure")
    assert functions(record["second"]) == grabbed
    (record,) = wait_for(lambda: records(collector, "leak"), "the record of the leak")
    assert functions(record["buffers"][0]) == kept


def test_files_are_closed_after_the_report(ttmemd, compiled):
    ttmemd.start()
    program = compiled(SOURCE)
    for _ in range(5):
        ttmemd.wait_for_leak(execute(ttmemd, program, "/none"))

    wait_for(lambda: str(program) not in descriptors(ttmemd.process.pid), "the descriptors to be closed")
