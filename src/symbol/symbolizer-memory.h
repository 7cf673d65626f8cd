/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was found out for a book, under the book's own name: it stays true when the files are gone, were
 * built anew, or were in a container that has ended. And it is there without asking anybody, so whoever
 * holds a lock may look. What one book's files said is never told of another's: a file may say what its
 * maker likes.
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

/* 0; -ENOENT if it is known that there is no name; -EAGAIN if nobody has asked. */
int symbolizer_memory_find(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, struct symbolizer_answer *ret_answer);

/* What symbolizer_find() has returned, if asking again would give the same. */
void symbolizer_memory_put(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, int r, const struct symbolizer_answer *answer);
