# SPDX-License-Identifier: Apache-2.0
"""System calls of the library: a few at the first event, none once warm."""

import re
import shutil
import subprocess

import pytest

from conftest import LIMIT
from life import track  # noqa: F401 (fixture)

# Marks are calls that do not occur by accident: getpgid() of an impossible pid.
PROGRAM = r"""
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static void mark(void) { syscall(SYS_getpgid, 0x7ffffff0); }

static __attribute__((noinline)) void loop(uint32_t device, uint64_t count)
{
	static const char *const names[] = {"a", "b", "c", NULL};
	uint32_t mesh[] = {device, device + 10};

	ttmem_phase_push("loop");
	for (uint64_t i = 0; i < count; i++) {
		uint64_t address = i * 7919 % 1000 * 64;

		ttmem_alloc(device, TTMEM_DRAM, address, 64, names[i % 4]);
		ttmem_free(device, TTMEM_DRAM, address);
		ttmem_alloc_mesh(mesh, 2, TTMEM_L1, address, 64, names[i % 4]);
		ttmem_free_mesh(mesh, 2, TTMEM_ANY, address);
	}
	ttmem_phase_pop();
}

static void *work(void *context)
{
	uint32_t device = *(uint32_t *)context;
	volatile int rounds = 2; /* from the same place: another is a new stack */

	for (int i = 0; i < rounds; i++) {
		loop(device, i ? 50000 : 20000); /* first once around the ring and the graveyard */
		mark();
	}
	return NULL;
}

int main(void)
{
	uint32_t devices[] = {0, 1};
	pthread_t thread;

	mark();
	ttmem_alloc(5, TTMEM_DRAM, 1, 1, "first");
	mark();
	work(&devices[0]);
	pthread_create(&thread, NULL, work, &devices[1]);
	pthread_join(thread, NULL);
	return 0;
}
"""


@pytest.fixture(params=["off", "auto"])
def stacks(request):
    return request.param


@pytest.fixture
def calls(compile_c, track, tmp_path, stacks):  # noqa: F811
    """What was called between each two marks, by thread."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    log = tmp_path / "strace"
    program = compile_c(PROGRAM)
    result = subprocess.run(
        ["strace", "-f", "-o", log, program], env={**track, "TTMEM_STACKS": stacks}, capture_output=True, timeout=LIMIT
    )
    if b"ptrace" in result.stderr:
        pytest.skip("strace may not trace here")
    assert result.returncode == 0, result.stderr
    threads = {}
    for line in log.read_text().splitlines():
        tid, name = re.match(r"(\d+) +(?:<\.\.\. )?([\w+-]+)", line).groups()
        threads.setdefault(tid, []).append(name)
    parts = []
    for names in threads.values():
        marks = [i for i, name in enumerate(names) if name == "getpgid"]
        parts += [names[a + 1 : b] for a, b in zip(marks[::2], marks[1::2])]
    return parts


def test_first_event_and_warm_loops(calls, stacks):
    first, warm, warm_thread = calls
    most = 52
    if stacks == "auto":
        # The thread's stack is found in its list of mappings, which is read in small pieces.
        first = [name for name in first if name != "read"]
        most += 10
    # Each level of a version 2 control group costs three more, beyond the first.
    groups = max(0, first.count("openat") - 6) * 3
    assert len(first) <= most + groups, first
    assert warm == [] and warm_thread == []
