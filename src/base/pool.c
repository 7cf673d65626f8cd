/* SPDX-License-Identifier: Apache-2.0 */

/* Stores each text once. */

#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#define POOL_CHUNK 65536u

struct pool_chunk {
	struct pool_chunk *next;
	size_t used, size;
	char bytes[];
};

void pool_deinit(struct pool *pool)
{
	while (pool->chunks) {
		struct pool_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		free(chunk);
	}
	free(pool->table);
	*pool = POOL_NULL;
}

/* Every word is mixed with the secret seed, so that collisions cannot be computed in advance. */
static uint64_t pool_hash(uint64_t seed, const char *text, size_t length)
{
	uint64_t hash = seed ^ length;

	while (length > 0) {
		size_t n = bits_min(length, 8);
		uint64_t word = 0;

		memcpy(&word, text, n);
		hash = hash_fold(hash ^ word ^ HASH_K0, seed | 1);
		text += n;
		length -= n;
	}
	return hash_fold(hash, HASH_K1);
}

/* The slot of @text in a table, used or empty. */
static size_t pool_find(const char *const *table, size_t capacity, uint64_t seed, const char *text,
			size_t length)
{
	size_t at = pool_hash(seed, text, length) & (capacity - 1);

	while (table[at] && strcmp(table[at], text) != 0)
		at = (at + 1) & (capacity - 1);
	return at;
}

static int pool_grow(struct pool *pool)
{
	size_t capacity = pool->capacity ? pool->capacity * 4 : 256;
	const char **table = calloc(capacity, sizeof(*table));

	if (!table)
		return -1;
	if (!pool->seed && getrandom(&pool->seed, sizeof(pool->seed), GRND_NONBLOCK) < 0)
		pool->seed = (uint64_t)(uintptr_t)table; /* early boot: better than nothing */
	for (size_t i = 0; i < pool->capacity; i++) {
		const char *text = pool->table[i];

		if (text)
			table[pool_find(table, capacity, pool->seed, text, strlen(text))] = text;
	}
	free(pool->table);
	pool->table = table;
	pool->capacity = capacity;
	return 0;
}

static char *pool_store(struct pool *pool, const char *text, size_t size)
{
	struct pool_chunk *chunk = pool->chunks;
	char *to;

	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > POOL_CHUNK ? size : POOL_CHUNK;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->used = 0;
		chunk->size = room;
		chunk->next = pool->chunks;
		pool->chunks = chunk;
	}
	to = chunk->bytes + chunk->used;
	memcpy(to, text, size);
	chunk->used += size;
	return to;
}

/* @text is already clean. */
static const char *pool_enter(struct pool *pool, const char *text, size_t length)
{
	size_t at;

	if (pool->count >= pool->capacity / 2 && pool_grow(pool) < 0)
		return NULL;
	at = pool_find(pool->table, pool->capacity, pool->seed, text, length);
	if (!pool->table[at]) {
		pool->table[at] = pool_store(pool, text, length + 1);
		if (pool->table[at])
			pool->count++;
	}
	return pool->table[at];
}

const char *pool_text(struct pool *pool, const char *bytes, size_t length)
{
	char text[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];

	length = text_clean(bytes, bits_min(length, POOL_TEXT_MAX), text);
	return pool_enter(pool, text, length);
}

const char *pool_long_text(struct pool *pool, const char *bytes, size_t length)
{
	CLEANUP_FREE char *text = NULL;

	if (length <= POOL_TEXT_MAX)
		return pool_text(pool, bytes, length);
	text = malloc(TEXT_CLEAN_SIZE(length));
	if (!text)
		return NULL;
	length = text_clean(bytes, length, text);
	return pool_enter(pool, text, length);
}
