/* SPDX-License-Identifier: Apache-2.0 */

/* Owners: every slot taken is alive, of that owner and type, and taken only once. */

#include "book/write/owners.h"

#include <stdlib.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/index.h"

struct otest {
	struct owners *owners;
	struct records records;
	struct book_shard page;
	uint64_t births;
};

static void otest_init(struct otest *test)
{
	*test = (struct otest){0};
	test->records.base = calloc(BOOK_SEGMENT_UNITS, BOOK_UNIT);
	test->records.page = &test->page;
	assert(test->records.base);
}

static void otest_deinit(struct otest *test)
{
	owners_free(test->owners);
	free(test->records.base);
}

static void otest_begin(struct otest *test, uint32_t slot, uint32_t type, uint64_t owner)
{
	*records_at(&test->records, slot) =
		(struct book_record){.birth = ++test->births, .meta = book_meta(type, 0, 1)};
	if (owner)
		assert(owners_add(&test->owners, &test->records, owner, slot));
}

static void otest_end(struct otest *test, uint32_t slot)
{
	records_at(&test->records, slot)->meta = 0;
}

static uint32_t otest_take(struct otest *test, uint64_t owner, uint32_t type)
{
	uint32_t slot = owners_take(test->owners, &test->records, owner, type);

	if (slot != INDEX_NONE)
		otest_end(test, slot);
	return slot;
}

UNIT(an_empty_list_has_no_owner)
{
	struct otest test;

	otest_init(&test);
	assert(otest_take(&test, 1, INDEX_ANY) == INDEX_NONE);
	owners_free(NULL);
	otest_deinit(&test);
}

UNIT(owners_are_found_by_owner_and_type)
{
	struct otest test;

	otest_init(&test);
	otest_begin(&test, 0, 5, 1);
	otest_begin(&test, 1, 0, 1);
	otest_begin(&test, 2, 5, 2);
	otest_begin(&test, 3, 5, 0);
	assert(otest_take(&test, 1, 3) == INDEX_NONE);
	assert(otest_take(&test, 1, 5) == 0);
	assert(otest_take(&test, 1, 5) == INDEX_NONE);
	assert(otest_take(&test, 1, INDEX_ANY) == 1);
	assert(otest_take(&test, 1, INDEX_ANY) == INDEX_NONE);
	assert(otest_take(&test, 2, INDEX_ANY) == 2);
	assert(otest_take(&test, 3, INDEX_ANY) == INDEX_NONE);
	otest_deinit(&test);
}

/* The slot has been reused by a buffer without an owner. */
UNIT(a_slot_that_was_reused)
{
	struct otest test;

	otest_init(&test);
	otest_begin(&test, 0, 5, 1);
	otest_end(&test, 0);
	otest_begin(&test, 0, 5, 0);
	assert(otest_take(&test, 1, INDEX_ANY) == INDEX_NONE);
	otest_deinit(&test);
}

/* A buffer that was added twice ends once. */
UNIT(named_twice)
{
	struct otest test;

	otest_init(&test);
	otest_begin(&test, 0, 5, 1);
	assert(owners_add(&test.owners, &test.records, 1, 0));
	assert(owners_add(&test.owners, &test.records, 2, 0));
	assert(otest_take(&test, 1, INDEX_ANY) == 0);
	assert(otest_take(&test, 1, INDEX_ANY) == INDEX_NONE);
	assert(otest_take(&test, 2, INDEX_ANY) == INDEX_NONE);
	otest_deinit(&test);
}

/*
 * Far more entries than the list holds at first, most of them dead: it is swept instead of growing
 * without limit.
 */
UNIT(dead_owners_are_swept)
{
	struct otest test;
	uint32_t taken = 0;

	otest_init(&test);
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t slot = 0; slot < 5000; slot++)
			otest_begin(&test, slot, slot % BOOK_TYPES, 1 + slot % 7);
		for (uint32_t slot = 0; slot < 5000; slot += 2)
			otest_end(&test, slot);
	}
	for (uint64_t owner = 1; owner <= 7; owner++) {
		uint32_t slot;

		while ((slot = otest_take(&test, owner, INDEX_ANY)) != INDEX_NONE) {
			assert(slot % 2 == 1 && 1 + slot % 7 == owner);
			taken++;
		}
	}
	assert(taken == 2500);
	otest_deinit(&test);
}
