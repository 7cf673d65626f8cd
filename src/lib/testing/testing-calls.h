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

#define CALLS_FRAMES 64u

/* Asking for the frame address forces a frame; using it at the end prevents a tail call. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define CALLS_FRAME_BEGIN() void *volatile frame_here = __builtin_frame_address(0)
#define CALLS_FRAME_END() (void)frame_here

/* The expected return addresses, innermost first. */
struct calls_expected {
	uintptr_t address[CALLS_FRAMES];
	size_t count;
};

struct calls_found {
	uintptr_t address[CALLS_FRAMES];
	size_t count;
	bool is_cut;    /* the outermost frame's callers could not be found */
	char path[256]; /* of the innermost frame's file */
	uint32_t build_id_length;
};

/* Before the first event: TTMEM_STACKS=@how. */
void calls_start(const char *how);

/* Allocates, and expects the return addresses of its callers, each of which has a frame. */
void calls_leaf(uint64_t address, struct calls_expected *expected);
void calls_middle(uint64_t address, struct calls_expected *expected);
void calls_recurse(uint32_t depth, struct calls_expected *expected);

/* Like dlopen(), for a library that was built beside the tests. */
void *calls_load(const char *name);

void calls_read_id(struct observer *w, uint32_t id, struct calls_found *ret_found);

/* The stack of the live buffer at @address; empty if it has none. */
void calls_read(uint64_t address, struct calls_found *ret_found);
uint64_t calls_lost(void);

bool calls_is_in(uintptr_t address, uintptr_t function);

/* Checks that the stack begins in calls_leaf() and continues as expected. */
void calls_check(const struct calls_found *found, const struct calls_expected *expected);

/* For stacks by tables: skips the test where they cannot be found. */
void calls_need_tables(void);
void calls_start_tables(const char *how);

void calls_expect(struct calls_expected *expected, const void *address);

/* Allocates through a function without a frame pointer; then through other unusual frames too. */
void calls_bare(uint64_t address, struct calls_expected *expected);
void calls_outer(uint64_t address, struct calls_expected *expected);

/* Calls calls_outer() and checks the stack. */
void calls_checked(uint64_t address);
