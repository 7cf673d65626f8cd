# SPDX-License-Identifier: Apache-2.0
"""ttmem run of a program that runs out of memory: one paragraph says what was asked for, and who held the rest."""

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
    assert line.endswith("At least 512.0 KiB in each bank would have to go.")


def test_what_would_have_to_go_is_said_as_far_as_it_is_certain(ttmem, compile_c):
    program = compile_c(FULL)
    (line,), _done = paragraph(ttmem, program, str(200 << 10), "fail")
    assert "fragmented" in line
    (line,), _done = paragraph(ttmem, program, str(3 << 20), "fail")
    assert "No bank is that large" in line


def test_what_the_program_survives_is_counted(ttmem, compile_c):
    lines, done = paragraph(ttmem, compile_c(FULL), str(1 << 20))
    assert lines == [] and "1 failed allocation was handled by the program" in done.stderr
