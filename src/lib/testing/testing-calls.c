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

#include "base/testing/unit.h"

#define CALLS_CODE 2048u /* larger than any function of these tests, with sanitizers too */

void calls_start(const char *how)
{
	observer_track();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACKS", how, 1) == 0);
}

__attribute__((noinline)) void calls_leaf(uint64_t address, struct calls_expected *expected)
{
	CALLS_FRAME_BEGIN();
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	expected->address[expected->count++] = (uintptr_t)__builtin_return_address(0);
	CALLS_FRAME_END();
}

__attribute__((noinline)) void calls_middle(uint64_t address, struct calls_expected *expected)
{
	CALLS_FRAME_BEGIN();
	calls_leaf(address, expected);
	expected->address[expected->count++] = (uintptr_t)__builtin_return_address(0);
	CALLS_FRAME_END();
}

__attribute__((noinline)) void calls_recurse(uint32_t depth, struct calls_expected *expected)
{
	CALLS_FRAME_BEGIN();
	if (depth > 0)
		calls_recurse(depth - 1, expected);
	else
		calls_middle(depth, expected);
	CALLS_FRAME_END();
}

void calls_read_id(struct observer *w, uint32_t id, struct calls_found *ret_found)
{
	struct book_frame frames[CALLS_FRAMES];
	struct book_module module;
	struct book_stack head;

	*ret_found = (struct calls_found){0};
	ret_found->count = reader_stack(&w->reader, id, &head, frames, CALLS_FRAMES);
	for (size_t i = 0; i < ret_found->count; i++) {
		assert(reader_module(&w->reader, frames[i].module, &module) == 0);
		ret_found->address[i] = frames[i].value + module.base;
		ret_found->is_cut = frames[i].flags & BOOK_FRAME_CUT;
		if (i > 0)
			continue;
		ret_found->build_id_length = module.build_id_length;
		strncpy(ret_found->path, observer_text(w, module.path),
			sizeof(ret_found->path) - 1);
	}
}

/* The stack of the live buffer at @address; empty if it has none. */
void calls_read(uint64_t address, struct calls_found *ret_found)
{
	const struct book_record *row;
	struct observer w;

	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	row = observer_row(&w, TTMEM_DRAM, address);
	assert(row);
	calls_read_id(&w, row->stack, ret_found);
	assert((row->stack == 0) == (ret_found->count == 0));
	observer_close(&w);
}

uint64_t calls_lost(void)
{
	struct observer w;
	uint64_t lost;

	assert(observer_open(&w, getpid()));
	lost = observer_header(&w)->lost_stacks;
	observer_close(&w);
	return lost;
}

bool calls_is_in(uintptr_t address, uintptr_t function)
{
	return address > function && address - function < CALLS_CODE;
}

void calls_check(const struct calls_found *found, const struct calls_expected *expected)
{
	assert(found->count > expected->count);
	assert(calls_is_in(found->address[0], (uintptr_t)&calls_leaf));
	for (size_t i = 0; i < expected->count; i++)
		assert(found->address[i + 1] == expected->address[i]);
}

void calls_expect(struct calls_expected *expected, const void *address)
{
	expected->address[expected->count++] = (uintptr_t)address;
}

/* A frame without a frame pointer. */
__attribute__((noinline)) void calls_bare(uint64_t address, struct calls_expected *expected)
{
	volatile uint8_t room[200];

	room[address % sizeof(room)] = 1;
	calls_leaf(address, expected);
	calls_expect(expected, __builtin_return_address(0));
}

/* A function that realigns its stack. */
static __attribute__((noinline)) void calls_aligned(uint64_t address,
						    struct calls_expected *expected)
{
	volatile uint8_t room[128] __attribute__((aligned(128)));

	room[address % sizeof(room)] = 1;
	calls_bare(address, expected);
	calls_expect(expected, __builtin_return_address(0));
}

/* A frame whose size is known only at run time. */
static __attribute__((noinline)) void calls_sized(uint64_t address, struct calls_expected *expected)
{
	volatile uint8_t *room = alloca(address % 4096 + 16);

	room[0] = 1;
	calls_aligned(address, expected);
	calls_expect(expected, __builtin_return_address(0));
}

__attribute__((noinline)) void calls_outer(uint64_t address, struct calls_expected *expected)
{
	expected->count = 0;
	calls_sized(address, expected);
	calls_expect(expected, __builtin_return_address(0));
}

void calls_checked(uint64_t address)
{
	struct calls_expected expected;
	struct calls_found found;

	calls_outer(address, &expected);
	calls_read(address, &found);
	assert(expected.count == 5);
	calls_check(&found, &expected);
}
