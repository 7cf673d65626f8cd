/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers found for a book, stored under the book: they stay valid when the files are deleted or
 * rebuilt, or their container is gone. A lookup waits for nothing, so callers may hold a lock.
 * Answers from one book's files are never used for another book: a file can claim anything.
 */

#include <pthread.h>
#include <stdint.h>

#include "symbol/symbolizer-cache.h"

struct symbolizer_answer;
struct symbolizer_module;

struct symbolizer_memory {
	pthread_mutex_t lock;
	struct symbolizer_cache cache;
};

void symbolizer_memory_init(struct symbolizer_memory *memory);
void symbolizer_memory_deinit(struct symbolizer_memory *memory);

/* 0; -ENOENT if it is known that there is no name; -EAGAIN if it has not been looked up. */
int symbolizer_memory_find(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, struct symbolizer_answer *ret_answer);

/* Stores the result of symbolizer_find(), unless a retry might give another one. */
void symbolizer_memory_put(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, int r, const struct symbolizer_answer *answer);
