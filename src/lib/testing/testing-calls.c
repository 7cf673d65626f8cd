/* SPDX-License-Identifier: Apache-2.0 */

/* Known call chains and the stacks found. Compiled into tests, so that the frames are theirs. */

#include "lib/testing/testing-calls.h"

#undef NDEBUG
#include <alloca.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/unit.h"

#define CHAIN_CODE 2048u /* larger than any function of these tests, with sanitizers too */

void chain_start(const char *how)
{
	witness_track();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACKS", how, 1) == 0);
}

__attribute__((noinline)) void chain_leaf(uint64_t address, struct chain_expected *expected)
{
	CHAIN_FRAME_BEGIN();
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	expected->address[expected->count++] = (uintptr_t)__builtin_return_address(0);
	CHAIN_FRAME_END();
}

__attribute__((noinline)) void chain_middle(uint64_t address, struct chain_expected *expected)
{
	CHAIN_FRAME_BEGIN();
	chain_leaf(address, expected);
	expected->address[expected->count++] = (uintptr_t)__builtin_return_address(0);
	CHAIN_FRAME_END();
}

__attribute__((noinline)) void chain_recurse(uint32_t depth, struct chain_expected *expected)
{
	CHAIN_FRAME_BEGIN();
	if (depth > 0)
		chain_recurse(depth - 1, expected);
	else
		chain_middle(depth, expected);
	CHAIN_FRAME_END();
}

void chain_read_id(struct witness *w, uint32_t id, struct chain_found *ret_found)
{
	struct book_frame frames[CHAIN_FRAMES];
	struct book_module module;
	struct book_stack head;

	*ret_found = (struct chain_found){0};
	ret_found->count = reader_stack(&w->reader, id, &head, frames, CHAIN_FRAMES);
	for (size_t i = 0; i < ret_found->count; i++) {
		assert(reader_module(&w->reader, frames[i].module, &module) == 0);
		ret_found->address[i] = frames[i].value + module.base;
		if (i > 0)
			continue;
		ret_found->build_id_length = module.build_id_length;
		strncpy(ret_found->path, witness_text(w, module.path), sizeof(ret_found->path) - 1);
	}
}

/* The stack of the live buffer at @address; empty if it has none. */
void chain_read(uint64_t address, struct chain_found *ret_found)
{
	const struct book_record *row;
	struct witness w;

	assert(witness_open(&w, getpid()));
	assert(witness_look(&w, 0, VIEW_LIVING));
	row = witness_row(&w, TTMEM_DRAM, address);
	assert(row);
	chain_read_id(&w, row->stack, ret_found);
	assert((row->stack == 0) == (ret_found->count == 0));
	witness_close(&w);
}

uint64_t chain_lost(void)
{
	struct witness w;
	uint64_t lost;

	assert(witness_open(&w, getpid()));
	lost = witness_header(&w)->lost_stacks;
	witness_close(&w);
	return lost;
}

bool chain_is_in(uintptr_t address, uintptr_t function)
{
	return address > function && address - function < CHAIN_CODE;
}

void chain_check(const struct chain_found *found, const struct chain_expected *expected)
{
	assert(found->count > expected->count);
	assert(chain_is_in(found->address[0], (uintptr_t)&chain_leaf));
	for (size_t i = 0; i < expected->count; i++)
		assert(found->address[i + 1] == expected->address[i]);
}

void chain_expect(struct chain_expected *expected, const void *address)
{
	expected->address[expected->count++] = (uintptr_t)address;
}

/* A frame without a frame pointer. */
__attribute__((noinline)) void chain_bare(uint64_t address, struct chain_expected *expected)
{
	volatile uint8_t room[200];

	room[address % sizeof(room)] = 1;
	chain_leaf(address, expected);
	chain_expect(expected, __builtin_return_address(0));
}

/* A function that realigns its stack. */
static __attribute__((noinline)) void chain_aligned(uint64_t address,
						    struct chain_expected *expected)
{
	volatile uint8_t room[128] __attribute__((aligned(128)));

	room[address % sizeof(room)] = 1;
	chain_bare(address, expected);
	chain_expect(expected, __builtin_return_address(0));
}

/* A frame whose size is known only at run time. */
static __attribute__((noinline)) void chain_sized(uint64_t address, struct chain_expected *expected)
{
	volatile uint8_t *room = alloca(address % 4096 + 16);

	room[0] = 1;
	chain_aligned(address, expected);
	chain_expect(expected, __builtin_return_address(0));
}

__attribute__((noinline)) void chain_outer(uint64_t address, struct chain_expected *expected)
{
	expected->count = 0;
	chain_sized(address, expected);
	chain_expect(expected, __builtin_return_address(0));
}

void chain_checked(uint64_t address)
{
	struct chain_expected expected;
	struct chain_found found;

	chain_outer(address, &expected);
	chain_read(address, &found);
	assert(expected.count == 5);
	chain_check(&found, &expected);
}
