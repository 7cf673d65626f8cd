/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stores each text once, and each block of bytes. Texts are made valid UTF-8 when added. All live as
 * long as the pool, so that equal ones have equal pointers and can be compared by pointer.
 */

#include <stddef.h>
#include <stdint.h>

struct pool_chunk;

struct pool {
	struct pool_chunk *chunks; /* newest first */
	const char **table;        /* open addressing, a power of two in size */
	size_t capacity;
	size_t count;
	uint64_t seed; /* secret: who chooses the names must not be able to choose collisions */
};

#define POOL_TEXT_MAX 4096u /* longer ones are cut before they are cleaned */

#define POOL_NULL     \
	(struct pool) \
	{             \
		0     \
	}

void pool_deinit(struct pool *pool);

/* @bytes as text; NULL only if memory has run out. */
const char *pool_text(struct pool *pool, const char *bytes, size_t length);

/* The same without a maximum: the caller has its own. */
const char *pool_long_text(struct pool *pool, const char *bytes, size_t length);

/* @size bytes, aligned as numbers and pointers are. NULL only if memory has run out. */
const void *pool_block(struct pool *pool, const void *bytes, size_t size);
