# SPDX-License-Identifier: Apache-2.0
"""TTMEM_DEBUG=FILE: a line for every call, without ever disturbing the application."""

import os
import re
import resource
import subprocess

import pytest

from conftest import LIMIT, has_legacy
from life import track  # noqa: F401 (fixture)
from oldlogs import Logs

CALLS = r"""
#include <stdlib.h>
#include <ttmem/ttmem.h>

int main(int argc, char **argv)
{
	struct ttmem_alloc_args args = {.struct_size = 4};
	uint32_t mesh[] = {0, 1};

	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "good");
	ttmem_alloc(9999, TTMEM_DRAM, 0x1000, 64, "no device");
	ttmem_alloc(0, 77, 0x1000, 64, "no type");
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 0, "no size");
	ttmem_alloc_ex(&args);
	ttmem_alloc_ex(NULL);
	ttmem_alloc(0, TTMEM_DRAM, 0x2000, 64, "two\nlines\033[31m");
	ttmem_alloc_mesh(mesh, 2, TTMEM_L1, 0x3000, 64, NULL);
	ttmem_free(0, TTMEM_ANY, 0x1000);
	ttmem_pause();
	ttmem_free(0, TTMEM_DRAM, 0x2000);
	ttmem_resume();
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++)
		ttmem_free(0, TTMEM_DRAM, 0x2000);
	return 0;
}
"""


@pytest.fixture
def program(compile_c):
    return compile_c(CALLS)


def run(program, env, *args, **options):
    return subprocess.run([program, *args], env=env, check=True, timeout=LIMIT, **options)


def test_lines(program, track, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    run(program, {**track, "TTMEM_DEBUG": str(log), "TTMEM_STACKS": "off"})
    lines = log.read_text().splitlines()
    assert all(re.match(r"ttmem\[\d+\.\d+\] ", line) for line in lines)
    text = [line.split("] ", 1)[1] for line in lines]
    assert text == [
        "tracking is on, the book is made",
        "alloc device=0 type=0 address=0x1000 size=64 name=good: recorded",
        "alloc device=9999 type=0 address=0x1000 size=64 name=no device: "
        "rejected, no such device",
        "alloc device=0 type=77 address=0x1000 size=64 name=no type: rejected, no such type",
        "alloc device=0 type=0 address=0x1000 size=0 name=no size: "
        "rejected, size is 0 or too large",
        "alloc_ex device=0 type=0 address=0x0 size=0 flags=0x0 space=0 name=-: "
        "rejected, NULL, a struct too short or unknown flags",
        "alloc_ex device=0 type=0 address=0x0 size=0 flags=0x0 space=0 name=-: "
        "rejected, NULL, a struct too short or unknown flags",
        "alloc device=0 type=0 address=0x2000 size=64 name=two?lines?[31m: recorded",
        "alloc_mesh devices=2 type=1 address=0x3000 size=64: recorded",
        "free device=0 type=-1 address=0x1000: recorded",
        "pause",
        "free device=0 type=0 address=0x2000: not recorded, tracking is paused",
        "resume",
        "goodbye",
    ]
    assert log.stat().st_mode & 0o777 == 0o600


def test_why_nothing_is_recorded(program, clean_env, tmp_path):
    log = tmp_path / "log"
    run(program, {**clean_env, "TTMEM_DEBUG": str(log)})
    (line,) = log.read_text().splitlines()
    assert "tracking is off: set TTMEM=1" in line
    log.unlink()

    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    run(program, {**clean_env, "TTMEM": "1", "TTMEM_DEBUG": str(log)}, preexec_fn=no_files)
    (line,) = log.read_text().splitlines()
    assert "tracking is wanted, but no book could be made" in line


@pytest.mark.skipif(has_legacy(), reason="only where -Dlegacy=disabled leaves the old logs out")
def test_the_old_logs_do_nothing_where_they_are_left_out(program, clean_env, tmp_path):
    log = tmp_path / "log"
    logs = Logs(tmp_path)
    old = logs.settings()
    run(program, {**clean_env, **old, "TTMEM_DEBUG": str(log)})
    (line,) = log.read_text().splitlines()
    assert "tracking is off: set TTMEM=1" in line
    run(program, {**clean_env, **old, "TTMEM": "1", "TTMEM_DEBUG": str(log)})
    assert "tracking is on" in log.read_text()
    assert not any(path.exists() for path in (logs.buffer, logs.detailed, logs.stack))


def test_settings_that_are_none(program, track, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    settings = {**track, "TTMEM_DEBUG": str(log), "TTMEM_STACKS": "true"}
    run(program, settings)
    assert "stacks: off, TTMEM_STACKS is none of auto, " in log.read_text()
    assert log.read_text().splitlines()[0].endswith(": true")
    log.unlink()
    run(program, {**settings, "TTMEM_STACKS": "FP", "TTMEM_STACK_DEPTH": "65"})
    (line,) = [line for line in log.read_text().splitlines() if "stacks: " in line]
    assert line.endswith("stacks: 16 frames, TTMEM_STACK_DEPTH is no number from 1 to 64: 65")
    log.unlink()
    run(program, {**settings, "TTMEM_STACKS": " fp", "TTMEM_STACK_DEPTH": "64"})
    assert "stacks: " not in log.read_text()


def test_files_that_are_none(program, track, tmp_path):  # noqa: F811
    """A pipe that nobody reads, one that is hung up, a terminal, a link: no lines, no harm."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    target = tmp_path / "target"
    link = tmp_path / "link"
    link.symlink_to(target)
    for path in (fifo, link, tmp_path, "/dev/full", "/nowhere/at/all", "x" * 5000):
        run(program, {**track, "TTMEM_DEBUG": str(path)}, "100")
    assert not target.exists()
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run(program, {**track, "TTMEM_DEBUG": str(fifo)}, "10000")
    os.close(reader)


def test_file_size_limit(program, track, tmp_path):  # noqa: F811
    """Writing beyond the limit would be answered with SIGXFSZ, which kills."""
    log = tmp_path / "log"
    limit = 32 << 20

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    log.write_text("\n" * (limit - 1000))
    run(program, {**track, "TTMEM_DEBUG": str(log)}, "100", preexec_fn=limited)
    assert limit - 1000 < log.stat().st_size <= limit
