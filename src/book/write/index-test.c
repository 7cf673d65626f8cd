/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The index compared with a plain list: growth by splits, spills, equal hashes, and all types of an
 * address.
 */

#include "book/write/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"

#define ITEST_SLOTS 100000u

struct itest {
	struct index index;
	struct index_bucket *first;
	struct records records;
	struct book_shard page;
	uint32_t live; /* slots 0 .. live - 1: the records serve as the plain list */
};

static struct itest *itest_new(void)
{
	struct itest *test = calloc(1, sizeof(*test));
	uint32_t segments = 1 + ITEST_SLOTS / BOOK_SEGMENT_SLOTS;

	assert(test);
	test->first = aligned_alloc(CACHE_LINE, INDEX_FIRST * sizeof(*test->first));
	test->records.base = calloc(segments * BOOK_SEGMENT_UNITS, BOOK_UNIT);
	assert(test->first && test->records.base);
	memset(test->first, 0, INDEX_FIRST * sizeof(*test->first));
	for (uint32_t i = 0; i < segments; i++)
		test->page.directory[i] = i * BOOK_SEGMENT_UNITS;
	test->records.page = &test->page;
	index_init(&test->index, test->first);
	return test;
}

static void itest_free(struct itest *test)
{
	index_deinit(&test->index);
	free(test->records.base);
	free(test->first);
	free(test);
}

static uint32_t itest_find(const struct itest *test, uint64_t address, uint32_t type)
{
	return index_find(&test->index, &test->records, index_hash(address, 0),
			  (struct index_key){address, type, 0});
}

static void itest_add(struct itest *test, uint64_t address, uint32_t type)
{
	uint32_t slot = test->live++;

	assert(slot < ITEST_SLOTS);
	assert(index_prepare(&test->index, &test->records));
	*records_at(&test->records, slot) =
		(struct book_record){.address = address, .meta = book_meta(type, 0, 1)};
	index_insert(&test->index, index_hash(address, 0), slot);
}

static void itest_drop(struct itest *test, const struct book_record *record, uint32_t slot)
{
	uint64_t hash = index_hash(record->address, 0);
	struct index_spot spot = index_find_at(
		&test->index, &test->records, index_bucket_of(&test->index, hash), hash,
		(struct index_key){record->address, book_meta_type(record->meta), 0});

	assert(spot.slot == slot);
	index_remove_at(&test->index, spot);
}

/* Removes @slot and moves the last one there, so that the list has no gaps. */
static void itest_remove(struct itest *test, uint32_t slot)
{
	struct book_record *record = records_at(&test->records, slot);
	struct book_record *last = records_at(&test->records, --test->live);

	itest_drop(test, record, slot);
	assert(itest_find(test, record->address, book_meta_type(record->meta)) == INDEX_NONE);
	if (record != last) {
		itest_drop(test, last, test->live);
		*record = *last;
		index_insert(&test->index, index_hash(record->address, 0), slot);
	}
	*last = (struct book_record){0};
}

static void itest_check(const struct itest *test)
{
	assert(test->index.entries == test->live);
	for (uint32_t slot = 0; slot < test->live; slot++) {
		const struct book_record *record = records_at(&test->records, slot);

		assert(itest_find(test, record->address, book_meta_type(record->meta)) == slot);
	}
}

UNIT(index_grows_and_shrinks)
{
	struct testing_rng rng = testing_rng_new();
	struct itest *test = itest_new();

	/* The address is its number: each occurs once per type. */
	for (uint32_t i = 0; i < ITEST_SLOTS; i++)
		itest_add(test, i / BOOK_TYPES * 32, i % BOOK_TYPES);
	itest_check(test);
	assert(test->index.buckets >= ITEST_SLOTS / INDEX_LOAD);
	for (uint32_t i = 0; i < ITEST_SLOTS - 1000; i++)
		itest_remove(test, testing_below(&rng, test->live));
	itest_check(test);
	assert(itest_find(test, ITEST_SLOTS * UINT64_C(32), 0) == INDEX_NONE);
	itest_free(test);
}

UNIT(index_matches_a_model_under_random_changes)
{
	struct testing_rng rng = testing_rng_new();
	struct itest *test = itest_new();

	for (uint32_t i = 0; i < 300000; i++) {
		uint64_t address = testing_below(&rng, 2000) * UINT64_C(64);
		uint32_t type = testing_below(&rng, BOOK_TYPES);
		uint32_t slot = itest_find(test, address, type);

		if (slot == INDEX_NONE)
			itest_add(test, address, type);
		else
			itest_remove(test, slot);
		if (i % 30000 == 0)
			itest_check(test);
	}
	itest_check(test);
	itest_free(test);
}

/* Addresses that all fall into one bucket at any size: long chains of spill buckets. */
UNIT(index_works_with_all_keys_in_one_bucket)
{
	struct itest *test = itest_new();
	uint64_t address = 0;

	while (test->live < 600) {
		if ((index_hash(++address, 0) & 0xfff) == 0x5a5)
			itest_add(test, address, (uint32_t)address % BOOK_TYPES);
	}
	assert(test->index.spills >= 600 / INDEX_WIDTH / 2);
	itest_check(test);
	/* Other keys make the buckets split, including the one with the long chain. */
	for (uint64_t i = 0; i < 40000; i++)
		itest_add(test, UINT64_C(1) << 40 | i, 0);
	itest_check(test);
	while (test->live > 0)
		itest_remove(test, test->live / 2);
	assert(test->index.entries == 0);
	itest_free(test);
}

/* Spill buckets emptied by a split are used again. */
UNIT(spills_are_reused)
{
	struct itest *test = itest_new();
	uint32_t spills;

	for (uint32_t i = 0; i < 50000; i++)
		itest_add(test, i * UINT64_C(64), 0);
	spills = test->index.spills;
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 5000; i++)
			itest_remove(test, 0);
		for (uint32_t i = 0; i < 5000; i++)
			itest_add(test, (UINT64_C(1000000) + round * 5000 + i) * 64, 0);
	}
	itest_check(test);
	assert(test->index.spills <= 2 * spills + 64);
	itest_free(test);
}

UNIT(finds_all_types_of_an_address)
{
	struct itest *test = itest_new();
	uint32_t slots[BOOK_TYPES];

	for (uint32_t i = 0; i < 300; i++)
		itest_add(test, 64 + i, 0);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		assert(index_find_all(&test->index, &test->records, 1, 0, slots) == type);
		for (uint32_t i = 0; i < type; i++)
			assert(records_at(&test->records, slots[i])->address == 1);
		itest_add(test, 1, type);
	}
	assert(index_find_all(&test->index, &test->records, 1, 0, slots) == BOOK_TYPES);
	assert(index_find_all(&test->index, &test->records, 2, 0, slots) == 0);
	itest_free(test);
}
