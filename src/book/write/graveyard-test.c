/* SPDX-License-Identifier: Apache-2.0 */

/* The graveyard holds exactly the last 4096 frees, and finds the youngest of a key. */

#include "book/write/graveyard.h"

#include <stdlib.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/index.h"

struct gtest {
	struct graveyard yard;
	struct book_grave graves[BOOK_GRAVES];
	uint32_t buckets[BOOK_GRAVES];
	uint32_t older[BOOK_GRAVES];
	uint64_t published;
};

static struct gtest *gtest_new(void)
{
	struct gtest *test = calloc(1, sizeof(*test));

	assert(test);
	test->yard = (struct graveyard){
		.graves = test->graves,
		.published = &test->published,
		.buckets = test->buckets,
		.older = test->older,
		.room = UINT64_MAX,
	};
	return test;
}

static void gtest_bury(struct gtest *test, uint64_t address, uint32_t type, uint64_t death)
{
	const struct book_grave grave = {
		.address = address, .death = death, .meta = book_meta(type, 0, 1)};

	graveyard_bury(&test->yard, index_hash(address, 0), &grave);
	assert(test->published == test->yard.count);
}

/* Time of the free, 0 if there is no grave. */
static uint64_t gtest_find(const struct gtest *test, uint64_t address, uint32_t type)
{
	const struct book_grave *grave =
		graveyard_find(&test->yard, &(struct index_key){address, type, INDEX_ANY});

	return grave ? grave->death : 0;
}

UNIT(empty_graveyard_finds_nothing)
{
	struct gtest *test = gtest_new();
	struct graveyard none = {0};

	assert(gtest_find(test, 0, 0) == 0);
	assert(!graveyard_find(&none, &(struct index_key){0, INDEX_ANY, INDEX_ANY}));
	free(test);
}

UNIT(graveyard_keeps_exactly_the_last_4096)
{
	struct gtest *test = gtest_new();

	for (uint64_t n = 1; n <= 3 * BOOK_GRAVES + 5; n++) {
		gtest_bury(test, n * 64, 0, n);
		assert(gtest_find(test, n * 64, 0) == n);
		if (n >= BOOK_GRAVES) {
			assert(gtest_find(test, (n - BOOK_GRAVES + 1) * 64, 0) ==
			       n - BOOK_GRAVES + 1);
			assert(gtest_find(test, (n - BOOK_GRAVES) * 64, 0) == 0);
		}
	}
	free(test);
}

/* All in one chain, the longest possible. */
UNIT(graveyard_works_with_all_keys_in_one_bucket)
{
	struct gtest *test = gtest_new();
	uint64_t addresses[64];
	uint64_t address = 0;

	for (uint32_t n = 0; n < ARRAY_SIZE(addresses); n++) {
		while ((index_hash(++address, 0) >> 32) % BOOK_GRAVES != 17)
			;
		addresses[n] = address;
	}
	for (uint64_t n = 1; n <= 3 * BOOK_GRAVES; n++) {
		uint64_t k = n % ARRAY_SIZE(addresses);

		gtest_bury(test, addresses[k], 0, n);
		if (n > ARRAY_SIZE(addresses))
			assert(gtest_find(test, addresses[(k + 1) % ARRAY_SIZE(addresses)], 0) ==
			       n + 1 - ARRAY_SIZE(addresses));
	}
	free(test);
}

UNIT(graveyard_keeps_types_apart)
{
	struct gtest *test = gtest_new();

	gtest_bury(test, 64, 1, 1);
	gtest_bury(test, 64, 4, 2);
	gtest_bury(test, 128, 2, 3);
	assert(gtest_find(test, 64, 1) == 1);
	assert(gtest_find(test, 64, 4) == 2);
	assert(gtest_find(test, 64, 0) == 0);
	assert(gtest_find(test, 64, INDEX_ANY) == 2);
	gtest_bury(test, 64, 1, 4);
	assert(gtest_find(test, 64, INDEX_ANY) == 4);
	assert(gtest_find(test, 192, INDEX_ANY) == 0);
	free(test);
}

/* Numbers are kept in 32 bits. */
UNIT(graveyard_survives_a_counter_wrap)
{
	struct gtest *test = gtest_new();

	test->yard.count = UINT32_MAX - UINT64_C(100);
	for (uint64_t n = 1; n <= 3 * BOOK_GRAVES; n++) {
		gtest_bury(test, n * 64, 0, n);
		assert(gtest_find(test, n * 64, 0) == n || test->yard.count % UINT32_MAX <= 1);
		if (n > 2 * BOOK_GRAVES) {
			assert(gtest_find(test, (n - BOOK_GRAVES + 1) * 64, 0) != 0);
			assert(gtest_find(test, (n - BOOK_GRAVES) * 64, 0) == 0);
		}
	}
	free(test);
}
