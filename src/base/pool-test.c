/* SPDX-License-Identifier: Apache-2.0 */

/* Equal texts are stored once, also when there are many. */

#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

UNIT(equal_texts_are_stored_once)
{
	struct pool pool = POOL_NULL;
	const char *a = pool_text(&pool, "weights", 7);

	assert(strcmp(a, "weights") == 0);
	assert(pool_text(&pool, "weightsX", 7) == a);
	assert(pool_text(&pool, "weightsX", 8) != a);
	assert(strcmp(pool_text(&pool, "", 0), "") == 0);
	assert(pool.count == 3);
	pool_deinit(&pool);
}

UNIT(texts_are_cleaned_and_cut)
{
	struct pool pool = POOL_NULL;
	char large[2 * POOL_TEXT_MAX];

	assert(strcmp(pool_text(&pool, "a\xff", 2), "a\xef\xbf\xbd") == 0);
	memset(large, 'x', sizeof(large));
	assert(strlen(pool_text(&pool, large, sizeof(large))) == POOL_TEXT_MAX);
	memset(large, 0xff, sizeof(large));
	assert(strlen(pool_text(&pool, large, sizeof(large))) == 3 * POOL_TEXT_MAX);
	pool_deinit(&pool);
}

UNIT(pointers_stay_while_it_grows)
{
	enum {
		COUNT = 20000
	};
	static const char *texts[COUNT];
	struct pool pool = POOL_NULL;
	char text[32];

	for (int i = 0; i < COUNT; i++)
		texts[i] =
			pool_text(&pool, text, (size_t)snprintf(text, sizeof(text), "name %d", i));
	for (int i = 0; i < COUNT; i++) {
		size_t length = (size_t)snprintf(text, sizeof(text), "name %d", i);

		assert(strcmp(texts[i], text) == 0);
		assert(pool_text(&pool, text, length) == texts[i]);
	}
	assert(pool.count == COUNT);
	pool_deinit(&pool);
}

/* Longer than a chunk, with small ones around it. */
UNIT(texts_longer_than_a_chunk_are_kept)
{
	struct pool pool = POOL_NULL;
	size_t size = 100000;
	char *large = malloc(size);
	const char *first, *text;

	assert(large);
	memset(large, 'x', size);
	first = pool_text(&pool, "a", 1);
	text = pool_long_text(&pool, large, size);
	assert(strlen(text) == size && pool_long_text(&pool, large, size) == text);
	assert(pool_long_text(&pool, "a", 1) == first);
	assert(strcmp(pool_text(&pool, "b", 1), "b") == 0 && strlen(text) == size);
	large[size - 1] = '\xff';
	assert(strlen(pool_long_text(&pool, large, size)) == size + 2 && pool.count == 4);
	free(large);
	pool_deinit(&pool);
}

UNIT(equal_blocks_are_stored_once)
{
	enum {
		COUNT = 2000
	};
	static const void *blocks[COUNT];
	struct pool pool = POOL_NULL;

	for (uint64_t i = 0; i < COUNT; i++) {
		const uint64_t block[] = {0, i, i % 2};

		/* Texts between them move the place of the next one. */
		assert(pool_text(&pool, "abcdefgh", i % 8));
		blocks[i] = pool_block(&pool, block, sizeof(block));
		assert((uintptr_t)blocks[i] % sizeof(void *) == 0);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		const uint64_t block[] = {0, i, i % 2};

		assert(memcmp(blocks[i], block, sizeof(block)) == 0);
		assert(pool_block(&pool, block, sizeof(block)) == blocks[i]);
		/* A part of one is another one. */
		assert(pool_block(&pool, block, sizeof(*block)) != blocks[i]);
	}
	assert(pool.count == COUNT + 1 + 8);
	pool_deinit(&pool);
}
