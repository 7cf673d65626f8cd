# SPDX-License-Identifier: Apache-2.0
"""Core dumps of tracked programs: neither the book nor the library's own memory is in them."""

import re
import resource
import subprocess
from pathlib import Path

import pytest

from conftest import LIMIT
from life import track  # noqa: F401 (fixture)

# The name is never whole in the program's file, and wiped from its own memory.
PROGRAM = r"""
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static char name[64];

int main(void)
{
	const char *half = getpid() > 0 ? "whisper" : "";

	for (int i = 0; i < 200000; i++) {
		strcpy(name, "marker-");
		strcat(name, half);
		strcat(name, i % 2 ? "-odd" : "-even");
		ttmem_alloc(0, TTMEM_DRAM, 0x5ec2e7000000 + (uint64_t)i * 64, 64, name);
	}
	ttmem_phase_push(name);
	memset(name, 0, sizeof(name));
	raise(SIGABRT);
	return 0;
}
"""


def dump(program, env, folder):
    """The core file of one run."""
    for old in folder.glob("core*"):
        old.unlink()
    subprocess.run(
        [program], env=env, cwd=folder, timeout=LIMIT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),
    )  # fmt: skip
    files = list(folder.glob("core*"))
    assert len(files) == 1, files
    return files[0]


def test_a_core_dump_has_neither_book_nor_index(compile_c, clean_env, track, tmp_path):  # noqa: F811
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if not re.fullmatch(r"core(\.%\w)*", pattern):
        pytest.skip("core dumps do not come into the working folder here")
    folder = tmp_path / "cores"
    folder.mkdir()
    program = compile_c(PROGRAM)
    plain = dump(program, {**clean_env, "TTMEM": "0"}, folder).stat().st_size
    core = dump(program, track, folder)
    bytes_ = core.read_bytes()
    assert b"marker-whisper" not in bytes_
    # Addresses of buffers: the records, the ring and the graveyard have each of them.
    assert bytes_.count((0x5EC2E7000000 + 64 * 777).to_bytes(8, "little")) == 0
    # 200,000 buffers have more than ten million bytes of book and two of index.
    assert core.stat().st_size < plain + (1 << 20)
