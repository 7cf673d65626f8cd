# SPDX-License-Identifier: Apache-2.0
"""ttmem run --black-box: the last minute of a process that failed, was killed or left something."""

import json
import signal

import pytest

SOURCE = """
#include <signal.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "gone");
	if (strcmp(argv[1], "fails") == 0)
		ttmem_alloc_failed(0, TTMEM_DRAM, 1 << 20, 4096);
	if (strcmp(argv[1], "leaves") == 0)
		ttmem_alloc(0, TTMEM_DRAM, 0x2000, 128, "left");
	ttmem_free(0, TTMEM_DRAM, 0x1000);
	if (strcmp(argv[1], "killed") == 0)
		kill(getpid(), SIGKILL);
	return argc - 2;
}
"""


@pytest.fixture
def program(compile_c):
    return compile_c(SOURCE, "boxed")


def ask(ttmem, command, path, *more):
    done = ttmem(command, "--from", path, *more, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_leaves_something_is_recorded(ttmem, program, tmp_path):
    done = ttmem("run", "--black-box", "--", program, "leaves", cwd=tmp_path)
    (path,) = tmp_path.glob("*.ttrec")
    assert path.name.endswith("-ended.ttrec") and path.name in done.stderr
    assert path.stat().st_mode & 0o077 == 0
    assert [(b["name"], b["size"]) for b in ask(ttmem, "buffers", path)["buffers"]] == [("left", 128)]


def test_what_leaves_nothing_is_not(ttmem, program, tmp_path):
    done = ttmem("run", "--black-box", "--", program, "nothing", cwd=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.glob("*.ttrec"))


def test_a_failed_allocation_is_recorded_also_if_all_was_freed_after_it(ttmem, program, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    ttmem("run", f"--black-box={folder}", "--", program, "fails", cwd=tmp_path)
    paths = list(folder.glob("*.ttrec"))
    assert len(paths) == 1 and not list(tmp_path.glob("*.ttrec"))
    incidents = ask(ttmem, "incidents", paths[0])["incidents"]
    assert [i["kind"] for i in incidents] == ["alloc_failed"]


def test_a_killed_process_is_recorded_with_nothing_left(ttmem, program, tmp_path):
    done = ttmem("run", "--black-box", "--", program, "killed", cwd=tmp_path)
    assert done.returncode == 128 + signal.SIGKILL
    (path,) = tmp_path.glob("*.ttrec")
    document = ask(ttmem, "buffers", path, "--at", "end")
    assert document["buffers"] == [] and document["recording"]["events"] == 2


def test_a_folder_that_cannot_be_used_is_told_at_once(ttmem, program, tmp_path):
    (tmp_path / "file").touch()
    done = ttmem("run", f"--black-box={tmp_path}/file/missing", "--", program, "leaves", cwd=tmp_path)
    assert done.returncode == 2 and "--black-box" in done.stderr
