# SPDX-License-Identifier: Apache-2.0
"""Programs that forbid themselves system calls or the time stamp counter: the library must not be what ends them."""

import subprocess

import pytest

from common import LIMIT
from world import used

LIVE, SIZE = 3000, 64
ALL = {(0, "DRAM"): LIVE * SIZE, (1, "L1"): SIZE}


@pytest.fixture
def sandboxed(world):
    """Starts tests/programs/sandboxed.c; it has reported, and waits."""

    def start(when, what, tracked=True, **settings):
        process = world.adopt(
            subprocess.Popen(
                [str(world.build / "tests" / "programs" / "sandboxed"), when, what],
                env={**world.env, **({"TTMEM": "1"} if tracked else {}), **settings},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        world.show(process.pid)
        assert process.stdout.readline() == "ready\n", process.wait(timeout=LIMIT)
        return process

    return start


def end(process):
    """At the end of its input; the library's last words are part of it."""
    process.stdin.close()
    assert process.wait(timeout=LIMIT) == 0


def books(world, process):
    return [p for p in world.json("smi")["processes"] if p["pid"] == process.pid]


@pytest.mark.parametrize("what", ["strict", "filter", "memfd", "tsc-filter"])
def test_a_program_that_sandboxes_itself_first_lives_untracked(world, sandboxed, what):
    process = sandboxed("before", what)
    assert books(world, process) == []
    end(process)


@pytest.mark.parametrize("what", ["strict", "filter", "memfd", "tsc", "tsc-filter"])
def test_a_sandboxed_program_that_nobody_tracks_lives(world, sandboxed, what):
    process = sandboxed("before", what, tracked=False)
    assert books(world, process) == []
    end(process)


@pytest.mark.parametrize("when", ["before", "frozen"])
@pytest.mark.parametrize("stacks", ["off", "auto"])
def test_without_the_time_stamp_counter_everything_is_counted(world, sandboxed, when, stacks):
    process = sandboxed(when, "tsc", TTMEM_STACKS=stacks)
    assert used(world.json("smi"), process.pid) == ALL
    ages = [b["age_ns"] for b in world.json("buffers", "--pid", process.pid)["buffers"]]
    assert len(ages) == LIVE + 1
    assert max(ages) < LIMIT * 10**9
    end(process)


@pytest.mark.parametrize("what", ["strict", "filter", "memfd", "tsc-filter", "nothing"])
@pytest.mark.parametrize("stacks", ["off", "auto"])
def test_a_frozen_program_reports_everything_from_its_sandbox(world, sandboxed, what, stacks):
    process = sandboxed("frozen", what, TTMEM_STACKS=stacks)
    document = world.json("smi")
    assert used(document, process.pid) == ALL
    (row,) = books(world, process)
    assert row["exact"]
    rows = world.json("buffers", "--pid", process.pid)["buffers"]
    assert {b["name"] for b in rows} == {"odd", "even", None}
    assert {b["phase"] for b in rows} == {"sandboxed"}
    kinds = {i["kind"] for i in world.json("incidents")["incidents"] if i["pid"] == process.pid}
    assert kinds == {"double_free", "unknown_free", "alloc_failed"}
    end(process)


def test_a_child_of_a_frozen_program_needs_no_call(world, compile_c):
    """Forked after the freeze, sandboxed after the fork: it has no book, and lives."""
    program = compile_c(
        r"""
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(void)
{
	int status;

	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "parent");
	if (ttmem_freeze(16) != 0)
		return 1;
	if (fork() == 0) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		ttmem_alloc(0, TTMEM_DRAM, 0x2000, 64, "child");
		ttmem_free(0, TTMEM_DRAM, 0x2000);
		syscall(SYS_exit, ttmem_enabled());
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
"""
    )
    assert subprocess.run([program], env={**world.env, "TTMEM": "1"}, timeout=LIMIT).returncode == 0


def test_descriptors_that_the_program_uses_itself_are_not_read(world, compile_c):
    """It closes all that it did not open, as daemons do, and gives every number to a pipe of its own."""
    program = compile_c(
        r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static const char sent[] = "Name:\tmine\nSeccomp:\t1\nSeccomp_filters:\t0\n";

int main(void)
{
	struct rlimit limit;
	char read_back[sizeof(sent)] = {0};
	int ends[2];

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || close_range(3, ~0u, 0) < 0 ||
	    pipe2(ends, O_NONBLOCK) < 0 ||
	    write(ends[1], sent, sizeof(sent)) != sizeof(sent))
		return 1;
	for (int fd = 5; fd < 2048 && (rlim_t)fd < limit.rlim_cur - 16; fd++)
		if (dup2(ends[0], fd) != fd)
			return 2;
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 64, "first");
	if (read(ends[0], read_back, sizeof(read_back)) != sizeof(sent) ||
	    memcmp(read_back, sent, sizeof(sent)) != 0)
		return 3;
	for (int fd = 5; fd < 2048 && (rlim_t)fd < limit.rlim_cur - 16; fd++)
		if (close(fd) < 0)
			return 4;
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
""",
        flags=["-D_GNU_SOURCE"],
    )
    process = world.adopt(
        subprocess.Popen([program], env={**world.env, "TTMEM": "1"}, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    )  # fmt: skip
    world.show(process.pid)
    assert process.stdout.readline() == "ready\n", process.wait(timeout=LIMIT)
    assert used(world.json("smi"), process.pid) == {(0, "DRAM"): 64}
    end(process)


def test_an_inherited_filter_does_not_end_tracking(world, sandboxed):
    """A container's or a service's: nothing was forbidden since the program began."""
    process = sandboxed("exec", "rare")
    assert used(world.json("smi"), process.pid) == ALL
    end(process)


def test_a_filter_of_a_forked_child_ends_its_tracking(world):
    """One that allows the child to look; its parent's book is not affected."""
    process = subprocess.Popen(
        [str(world.build / "tests" / "programs" / "sandboxed"), "child", "memfd"],
        env={**world.env, "TTMEM": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    world.adopt(process)
    world.show(process.pid)
    assert process.stdout.readline() == "ready\n"
    assert used(world.json("smi"), process.pid) == {(0, "DRAM"): 77}
    end(process)


def test_what_no_longer_fits_is_counted(world, compile_c):
    program = compile_c(
        r"""
#include <stdint.h>
#include <stdio.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 0, 64, "first");
	printf("%d\n", ttmem_freeze(100));
	for (uint64_t i = 1; i <= 100000; i++)
		ttmem_alloc(0, TTMEM_DRAM, i * 64, 64, 0);
	ttmem_alloc(7, TTMEM_DRAM, 64, 64, "a device that came too late");
	printf("%d\n", ttmem_freeze(1));
	fflush(stdout);
	pause();
	return 0;
}
"""
    )
    process = world.adopt(
        subprocess.Popen([program], env={**world.env, "TTMEM": "1"}, stdout=subprocess.PIPE, text=True)
    )
    world.show(process.pid)
    assert process.stdout.readline() == "0\n"
    assert process.stdout.readline() == "0\n"
    (row,) = books(world, process)
    assert not row["exact"]
    (device,) = row["devices"]
    memory = device["memory"]["DRAM"]
    assert memory["buffers"] >= 101
    assert memory["bound"] == "at_least"


def test_freezing_without_tracking_says_so(world, compile_c):
    program = compile_c("#include <ttmem/ttmem.h>\nint main(void) { return -ttmem_freeze(1); }")
    assert subprocess.run([program], env=world.env, timeout=LIMIT).returncode == 61  # ENODATA


def test_python_freezes(python):
    program = "import ttmem; ttmem.alloc(0, 'DRAM', 0x1000, 64); print(ttmem.freeze(100), ttmem.freeze())\n"
    program += "for i in range(200): ttmem.alloc(0, 'DRAM', 0x2000 + i * 64, 64, str(i))\n"
    program += "print(ttmem.memory_allocated(0) >= 101 * 64)"
    assert python.run(program).split() == ["True", "True", "True"]
