/* SPDX-License-Identifier: Apache-2.0 */

/* Stored answers are found again, as long as there is room for them. */

#include "symbol/symbolizer-cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"

#define MANY 8000u

static struct symbolizer_cache cache;
static struct resolve_frame frames[RESOLVE_FRAMES_MAX];

static struct symbolizer_key key_of(uint64_t number)
{
	return (struct symbolizer_key){.address = number * 16, .user = 1000};
}

static void put(uint64_t number, uint32_t count)
{
	struct symbolizer_key key = key_of(number);
	struct resolve_frame frame[2] = {{.line = (uint32_t)number}, {.line = 7}};

	(void)snprintf(frame[0].function, sizeof(frame[0].function), "f%u", (uint32_t)number);
	symbolizer_cache_put(&cache, &key, frame, count);
}

static int find(uint64_t number)
{
	struct symbolizer_key key = key_of(number);

	return symbolizer_cache_find(&cache, &key, frames);
}

UNIT(all_symbols_of_a_large_program_fit)
{
	char name[32];

	assert(find(1) == -ENOENT); /* the cache is empty */
	for (uint32_t i = 0; i < MANY; i++)
		put(i, i % 3);
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		assert(find(i) == (int)(i % 3));
		if (i % 3 > 0)
			assert(strcmp(frames[0].function, name) == 0 && frames[0].line == i);
	}
	assert(find(MANY) == -ENOENT);
	symbolizer_cache_deinit(&cache);
}

UNIT(the_last_answer_counts)
{
	put(5, 2);
	put(5, 1);
	assert(find(5) == 1 && cache.bytes > 0);
	symbolizer_cache_deinit(&cache);
	assert(find(5) == -ENOENT && cache.bytes == 0);
}

/* More answers than slots: it stays within its bounds and keeps working. */
UNIT(the_symbol_cache_stays_within_its_bounds)
{
	for (uint32_t i = 0; i < 3 * SYMBOLIZER_CACHE_PLACES; i++) {
		put(i, 2);
		assert(cache.bytes <= SYMBOLIZER_CACHE_BYTES);
		assert(find(i) == 2);
	}
	symbolizer_cache_deinit(&cache);
}
