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

#include "daemon/symbols-cache.h"

struct symbols_answer;
struct symbols_module;

struct symbols_memory {
	pthread_mutex_t lock;
	struct symbols_cache cache;
};

void symbols_memory_init(struct symbols_memory *memory);
void symbols_memory_deinit(struct symbols_memory *memory);

/* 0; -ENOENT if it is known that there is no name; -EAGAIN if nobody has asked. */
int symbols_memory_find(struct symbols_memory *memory, const struct symbols_module *module,
			uint64_t address, struct symbols_answer *ret_answer);

/* @answer: NULL = there is no name. */
void symbols_memory_put(struct symbols_memory *memory, const struct symbols_module *module,
			uint64_t address, const struct symbols_answer *answer);
