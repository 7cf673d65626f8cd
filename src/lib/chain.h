/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the tests of stacks share: calls whose return addresses are known, and the stacks that an outsider
 * finds in the book. Some of the calls have frame pointers, and some have not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/witness.h"

#define CHAIN_FRAMES 64u

/* The asking makes the compiler give the function a frame, the use that it is no jump to the next. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define CHAIN_FRAME_BEGIN() void *volatile frame_here = __builtin_frame_address(0)
#define CHAIN_FRAME_END() (void)frame_here

/* What is expected: the addresses that calls return to, innermost first. */
struct chain_expected {
	uintptr_t address[CHAIN_FRAMES];
	size_t count;
};

struct chain_found {
	uintptr_t address[CHAIN_FRAMES];
	size_t count;
	char path[256]; /* of the innermost frame's file */
	uint32_t build_id_length;
};

/* Before the first event: TTMEM_STACKS=@how. */
void chain_start(const char *how);

/* Allocates; the caller's caller and so on are what is expected. Each has a frame. */
void chain_leaf(uint64_t address, struct chain_expected *expected);
void chain_middle(uint64_t address, struct chain_expected *expected);
void chain_recurse(uint32_t depth, struct chain_expected *expected);

/* As dlopen(), of a library that was built beside the tests. */
void *chain_load(const char *name);

void chain_read_id(struct witness *w, uint32_t id, struct chain_found *ret_found);

/* The stack of the live buffer at @address; none if it has none. */
void chain_read(uint64_t address, struct chain_found *ret_found);
uint64_t chain_lost(void);

bool chain_is_in(uintptr_t address, uintptr_t function);

/* What was found begins in chain_leaf() and goes on as expected. */
void chain_check(const struct chain_found *found, const struct chain_expected *expected);

/* For stacks by tables: skips the test where there is no libunwind. */
void chain_need_tables(void);
void chain_start_tables(const char *how);

void chain_expect(struct chain_expected *expected, const void *address);

/* Allocates through a function without frame pointer; through that, and others that are odd in other ways. */
void chain_bare(uint64_t address, struct chain_expected *expected);
void chain_outer(uint64_t address, struct chain_expected *expected);

/* The latter, and its stack is what it should be. */
void chain_checked(uint64_t address);
