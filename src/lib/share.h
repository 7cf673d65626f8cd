/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For the library's tests: what one thread has reported, kept in the plainest way. A thread has keys of
 * its own, so a share needs no lock, and the shares of a process add up to what its book must say.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/layout.h"

#define SHARE_DEVICES 4u /* by index; which they are is the test's business */
#define SHARE_KEYS 24u   /* addresses, by index; few, so that everything happens to them */
#define SHARE_OWNERS 4u  /* 0 = none */

struct share_row {
	uint64_t size; /* 0 = not there */
	uint64_t born; /* by the count of this thread's operations */
	uint32_t refs;
	uint32_t name;
	uint32_t owners; /* bit n: owner n of this thread */
};

struct share_counters {
	uint64_t bytes, buffers, allocs, frees;
	uint64_t no_frees; /* unknown and double together: which depends on the other threads */
	uint64_t size_changes, realloc_live, ambiguous_frees, hooked;
};

/* What one thread of a process did; nobody else touches its keys. */
struct share {
	struct share_row rows[SHARE_DEVICES][BOOK_TYPES][SHARE_KEYS];
	struct share_counters counters[SHARE_DEVICES][BOOK_TYPES];
	uint64_t operations;
	uint64_t paused;
};

/* One call. */
struct share_op {
	uint32_t device, type, key; /* indices; type may be TTMEM_ANY for a free */
	uint64_t size;
	uint32_t name;
	uint32_t owner;
};

/* What a call does. A free may have TTMEM_ANY as its type. */
void share_alloc(struct share *share, const struct share_op *op);
void share_free(struct share *share, const struct share_op *op);
void share_free_all(struct share *share, const struct share_op *op);

/* False for a free of nothing without a type, which the book may count under any. */
bool share_knows_free(const struct share *share, const struct share_op *op);
