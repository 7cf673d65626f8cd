/* SPDX-License-Identifier: Apache-2.0 */

/* Stores each text and each block once. Its head precedes it: the size, and which of them it is. */

#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#define POOL_CHUNK 65536u
#define POOL_BLOCK (UINT32_C(1) << 31) /* in a head */

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

static uint32_t pool_head(const char *entry)
{
	uint32_t head;

	memcpy(&head, entry - sizeof(head), sizeof(head));
	return head;
}

/* The slot of @bytes in a table, used or empty. */
static size_t pool_find(const char *const *table, size_t capacity, uint64_t seed, const char *bytes,
			uint32_t head)
{
	size_t size = head & ~POOL_BLOCK;
	size_t at = pool_hash(seed, bytes, size) & (capacity - 1);

	while (table[at] && (pool_head(table[at]) != head || memcmp(table[at], bytes, size) != 0))
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
		const char *entry = pool->table[i];

		if (entry)
			table[pool_find(table, capacity, pool->seed, entry, pool_head(entry))] =
				entry;
	}
	free(pool->table);
	pool->table = table;
	pool->capacity = capacity;
	return 0;
}

static char *pool_store(struct pool *pool, const char *bytes, uint32_t head)
{
	size_t size = head & ~POOL_BLOCK, align = head & POOL_BLOCK ? sizeof(void *) : 1;
	struct pool_chunk *chunk = pool->chunks;
	size_t most = sizeof(head) + align + size;
	char *to;

	if (!chunk || chunk->size - chunk->used < most) {
		size_t room = most > POOL_CHUNK ? most : POOL_CHUNK;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->used = 0;
		chunk->size = room;
		chunk->next = pool->chunks;
		pool->chunks = chunk;
	}
	to = chunk->bytes + bits_align_up(chunk->used + sizeof(head), align);
	memcpy(to - sizeof(head), &head, sizeof(head));
	memcpy(to, bytes, size);
	chunk->used = (size_t)(to + size - chunk->bytes);
	return to;
}

/* @head: with the size; a text is clean, and its NUL counts. */
static const char *pool_enter(struct pool *pool, const char *bytes, uint32_t head)
{
	size_t at;

	if (pool->count >= pool->capacity / 2 && pool_grow(pool) < 0)
		return NULL;
	at = pool_find(pool->table, pool->capacity, pool->seed, bytes, head);
	if (!pool->table[at]) {
		pool->table[at] = pool_store(pool, bytes, head);
		if (pool->table[at])
			pool->count++;
	}
	return pool->table[at];
}

const char *pool_text(struct pool *pool, const char *bytes, size_t length)
{
	char text[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];

	length = text_clean(bytes, bits_min(length, POOL_TEXT_MAX), text);
	return pool_enter(pool, text, (uint32_t)length + 1);
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
	return pool_enter(pool, text, (uint32_t)length + 1);
}

const void *pool_block(struct pool *pool, const void *bytes, size_t size)
{
	return pool_enter(pool, bytes, (uint32_t)size | POOL_BLOCK);
}
