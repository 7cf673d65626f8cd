# SPDX-License-Identifier: Apache-2.0
"""A program that runs out of memory: one paragraph says what was asked for, who held the rest and what would have to go.

"ttmem run" prints it, and "ttmem incidents" has it of the process and of its recording.
"""

import json

import pytest

from world import check_schema

FULL = r"""
#include <stdlib.h>
#include <ttmem/ttmem.h>

static __attribute__((noinline)) void weights(uint64_t address)
{
	ttmem_alloc(0, TTMEM_DRAM, address, 3 << 20, "weights");
}

static __attribute__((noinline)) void cache(uint64_t address)
{
	ttmem_alloc(0, TTMEM_DRAM, address, 1 << 20, "cache");
}

static __attribute__((noinline)) void want(uint64_t size_per_bank)
{
	ttmem_alloc_failed_ex(&(struct ttmem_failed_args){
		.struct_size = sizeof(struct ttmem_failed_args), .type = TTMEM_DRAM, .size = 4 * size_per_bank,
		.largest_free = 100 << 10, .size_per_bank = size_per_bank, .bank_size = 2 << 20,
		.bank_free = 512 << 10, .banks = 4});
}

int main(int argc, char **argv)
{
	volatile uint64_t end = 3; /* one loop, and so one call site */

	for (uint64_t i = 1; i < end; i++)
		weights(i << 20);
	cache(3 << 20);
	want(strtoull(argv[1], 0, 0));
	ttmem_free_all(0, TTMEM_DRAM, 0); /* as exceptions do on their way out */
	return argc > 2;
}
"""


def paragraph(ttmem, program, *arguments):
    done = ttmem("run", "--", program, *arguments)
    return [line for line in done.stderr.splitlines() if line.startswith("out of memory: ")], done


def test_the_paragraph_has_the_state_of_that_moment(ttmem, compile_c):
    program = compile_c(FULL)
    (line,), done = paragraph(ttmem, program, str(1 << 20), "fail")
    assert done.returncode == 1
    assert line.startswith("out of memory: 4.0 MiB of DRAM on device 0 (1.0 MiB in each of 4 banks) were asked for by ")
    assert "want" in line and "512.0 KiB were free of 2.0 MiB in each bank." in line
    assert "The largest free block had 100.0 KiB in each bank." in line
    held = line.partition("It was held by: ")[2]
    assert held.startswith("6.0 MiB in 2 buffers, ") and "; 1.0 MiB in 1 buffer, " in held and "cache" in held
    assert line.endswith("At least 512.0 KiB in each bank would have to go; which buffers is not known.")


def test_what_would_have_to_go_is_said_as_far_as_it_is_certain(ttmem, compile_c):
    program = compile_c(FULL)
    (line,), _done = paragraph(ttmem, program, str(200 << 10), "fail")
    assert "fragmented" in line
    (line,), _done = paragraph(ttmem, program, str(3 << 20), "fail")
    assert "No bank is that large" in line


def test_what_the_program_survives_is_counted(ttmem, compile_c):
    lines, done = paragraph(ttmem, compile_c(FULL), str(1 << 20))
    assert lines == [] and "1 failed allocation was handled by the program" in done.stderr


# Four banks of 8 KiB each from 0x1000 on, of which the program's allocator says nothing when it fails.
DECLARED = r"""
#include <stdlib.h>
#include <unistd.h>
#include <ttmem/ttmem.h>

static __attribute__((noinline)) void keep(uint32_t type, uint64_t address, uint64_t each, uint32_t space, const char *name)
{
	ttmem_alloc_ex(&(struct ttmem_alloc_args){.struct_size = sizeof(struct ttmem_alloc_args), .type = type,
		.address = address, .size = 4 * each, .size_per_bank = each, .banks = 4, .space = space, .name = name});
}

static __attribute__((noinline)) void want(uint32_t type, uint64_t size)
{
	ttmem_alloc_failed(0, type, size, TTMEM_UNKNOWN);
}

int main(int argc, char **argv)
{
	struct ttmem_device_args device = {.struct_size = sizeof(device), .device = 0};

	device.memory[TTMEM_L1] = device.memory[TTMEM_DRAM] = (struct ttmem_memory_facts){
		.capacity = 32768, .bank_base = 0x1000, .bank_size = 8192, .banks = 4, .alignment = 64};
	ttmem_device(&device);
	%s
	for (uint32_t type = TTMEM_DRAM; type <= TTMEM_CB; type++)
		ttmem_free_all(0, type, 0);
	return 1;
}
"""

FRAGMENTED = """
	keep(TTMEM_DRAM, 0x1000, 2048, 0, "low");
	keep(TTMEM_DRAM, 0x2000, 1024, 0, "middle");
	keep(TTMEM_DRAM, 0x2800, 2048, 0, "high");
"""


def explained(ttmem, program, tmp_path):
    """The paragraph of "ttmem run", which is also that of "ttmem incidents" of the recording."""
    done = ttmem("run", f"--black-box={tmp_path}", "--", program)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("out of memory: ")]
    path = max(tmp_path.glob("*.ttrec"), key=lambda path: path.stat().st_mtime_ns)
    document = check_schema(json.loads(ttmem("incidents", "--from", path, "--json", check=True).stdout))
    (row,) = [row for row in document["incidents"] if row["kind"] == "alloc_failed"]
    assert "out of memory: " + row["explanation"] == line
    assert row["explanation"] in ttmem("incidents", "--from", path, check=True).stdout
    return line


def test_the_buffers_that_would_have_to_go_are_named(ttmem, compile_c, tmp_path):
    line = explained(ttmem, compile_c(DECLARED % (FRAGMENTED + "want(TTMEM_DRAM, 4 * 3072);")), tmp_path)
    assert "By its live buffers, 3.0 KiB were free of 8.0 KiB in each of 4 banks, in blocks of at most 2.0 KiB." in line
    assert "That much is free, but fragmented. It would have fit without this buffer, 1.0 KiB in each bank: " in line
    assert "in each bank: middle at 0x2000 (4.0 KiB, keep" in line and line.count("middle") == 1


def test_what_does_not_fit_an_empty_memory_is_said_so(ttmem, compile_c, tmp_path):
    line = explained(ttmem, compile_c(DECLARED % (FRAGMENTED + "want(TTMEM_DRAM, 1 << 20);")), tmp_path)
    assert line.endswith(" No bank is that large: whatever goes, it does not fit.")


@pytest.mark.parametrize("pause", ["", "usleep(1000 * 1000);"])
def test_of_repeats_the_last_one_is_explained(ttmem, compile_c, tmp_path, pause):
    """Its size, and what was live then: the first one is long ago, and may have a file of its own already."""
    program = compile_c(DECLARED % (FRAGMENTED + """
	volatile uint64_t end = 3;

	for (uint64_t i = 1; i < end; i++) {
		want(TTMEM_DRAM, 4 * 3072 * i);
		if (i == 1) {
			ttmem_free(0, TTMEM_DRAM, 0x2000);
			%s
		}
	}""" % pause))
    line = explained(ttmem, program, tmp_path)
    assert line.startswith("out of memory: 24.0 KiB of DRAM on device 0 were asked for by ") and "the last of 2 times" in line
    assert "4.0 KiB were free of 8.0 KiB in each of 4 banks, in blocks of at most 4.0 KiB." in line
    assert "middle" not in line and "without this buffer, 2.0 KiB in each bank: low at 0x1000" in line


@pytest.mark.parametrize("other", ['keep(TTMEM_DRAM, 0x1400, 2048, 0, "over");', 'keep(TTMEM_DRAM, 0x2400, 64, 5, "apart");'])
def test_memory_of_several_allocators_is_not_laid_out(ttmem, compile_c, tmp_path, other):
    """One of them refused it, and which buffers are its own is not known."""
    line = explained(ttmem, compile_c(DECLARED % (FRAGMENTED + other + "want(TTMEM_DRAM, 4 * 3072);")), tmp_path)
    assert "How much was free is not known. The largest free block is not known." in line
    assert line.endswith(" What would have to go is not known.")


def test_circular_buffers_are_not_in_the_way_of_buffers_in_L1(ttmem, compile_c, tmp_path):
    program = compile_c(DECLARED % """
	keep(TTMEM_CB, 0x1000, 4096, 0, "cb");
	keep(TTMEM_L1, 0x2800, 2048, 0, "tensor");
	want(TTMEM_L1, 4 * 7168);""")
    line = explained(ttmem, program, tmp_path)
    assert "6.0 KiB were free of 8.0 KiB in each of 4 banks" in line
    assert "It was held by: 8.0 KiB in 1 buffer, " in line
    assert "It would have fit without this buffer, 2.0 KiB in each bank: tensor at 0x2800" in line


@pytest.mark.parametrize("times", [1, 2])
def test_buffers_on_other_cores_would_not_have_to_go(ttmem, compile_c, tmp_path, times):
    """A request on single cores: the live buffers may lie on others. The mark is that of each request, not of the first one."""
    program = compile_c(DECLARED % (FRAGMENTED.replace("DRAM", "L1") + f"""
	volatile uint32_t end = {times};

	if (end > {times})
		want(TTMEM_DRAM, 1);
	for (uint32_t i = 1; i <= end; i++)
		ttmem_alloc_failed_ex(&(struct ttmem_failed_args){{
			.struct_size = sizeof(struct ttmem_failed_args), .type = TTMEM_L1, .size = 2 * 3072,
			.largest_free = TTMEM_UNKNOWN, .size_per_bank = 3072, .banks = 2,
			.shape_flags = i == end ? TTMEM_SHAPE_PER_CORE : 0}});"""))
    line = explained(ttmem, program, tmp_path)
    assert "How much was free is not known. The largest free block is not known." in line and "would have fit" not in line
    assert line.endswith(" It was requested on single cores, each with its own addresses; which buffers would have to go is not known.")
