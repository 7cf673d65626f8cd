/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For the library's tests: a simple model of what one thread has reported. Each thread has keys of
 * its own, so a share needs no lock, and the shares of a process add up to what its book must
 * contain.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

#define THREAD_MODEL_DEVICES 4u /* by index; the test chooses the devices */
#define THREAD_MODEL_KEYS 24u   /* addresses, by index; few, so that each sees many operations */
#define THREAD_MODEL_OWNERS 4u  /* 0 = none */

struct thread_model_row {
	uint64_t size; /* 0 = not live */
	uint64_t born; /* as this thread's operation count */
	uint32_t refs;
	uint32_t name;
	uint32_t owners; /* bit n: owner n of this thread */
};

struct thread_model_counters {
	uint64_t bytes, buffers, allocs, frees;
	uint64_t no_frees; /* unknown and double frees together: other threads decide which */
	uint64_t size_changes, realloc_live, ambiguous_frees, hooked;
};

/* What one thread of a process did; other threads do not touch its keys. */
struct thread_model {
	struct thread_model_row rows[THREAD_MODEL_DEVICES][BOOK_TYPES][THREAD_MODEL_KEYS];
	struct thread_model_counters counters[THREAD_MODEL_DEVICES][BOOK_TYPES];
	uint64_t operations;
	uint64_t paused;
};

/* One call. */
struct thread_model_op {
	uint32_t device, type, key; /* indices; type may be TTMEM_ANY for a free */
	uint64_t size;
	uint32_t name;
	uint32_t owner;
};

/* The effect of a call. A free may have TTMEM_ANY as its type. */
void thread_model_alloc(struct thread_model *thread_model, const struct thread_model_op *op);
void thread_model_free(struct thread_model *thread_model, const struct thread_model_op *op);
void thread_model_free_all(struct thread_model *thread_model, const struct thread_model_op *op);

/* False for an unmatched free without a type, which the book may count under any type. */
bool thread_model_knows_free(const struct thread_model *thread_model,
			     const struct thread_model_op *op);
