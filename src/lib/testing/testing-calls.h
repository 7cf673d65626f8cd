/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the tests of stacks: calls whose return addresses are known, and the stacks that
 * another process finds in the book. Some of the calls have frame pointers and some do not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/testing/testing-observer.h"

#define CHAIN_FRAMES 64u

/* Asking for the frame address forces a frame; using it at the end prevents a tail call. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define CHAIN_FRAME_BEGIN() void *volatile frame_here = __builtin_frame_address(0)
#define CHAIN_FRAME_END() (void)frame_here

/* The expected return addresses, innermost first. */
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

/* Allocates, and expects the return addresses of its callers, each of which has a frame. */
void chain_leaf(uint64_t address, struct chain_expected *expected);
void chain_middle(uint64_t address, struct chain_expected *expected);
void chain_recurse(uint32_t depth, struct chain_expected *expected);

/* Like dlopen(), for a library that was built beside the tests. */
void *chain_load(const char *name);

void chain_read_id(struct witness *w, uint32_t id, struct chain_found *ret_found);

/* The stack of the live buffer at @address; empty if it has none. */
void chain_read(uint64_t address, struct chain_found *ret_found);
uint64_t chain_lost(void);

bool chain_is_in(uintptr_t address, uintptr_t function);

/* Checks that the stack begins in chain_leaf() and continues as expected. */
void chain_check(const struct chain_found *found, const struct chain_expected *expected);

/* For stacks by tables: skips the test where there is no libunwind. */
void chain_need_tables(void);
void chain_start_tables(const char *how);

void chain_expect(struct chain_expected *expected, const void *address);

/* Allocates through a function without a frame pointer; then through other unusual frames too. */
void chain_bare(uint64_t address, struct chain_expected *expected);
void chain_outer(uint64_t address, struct chain_expected *expected);

/* Calls chain_outer() and checks the stack. */
void chain_checked(uint64_t address);
