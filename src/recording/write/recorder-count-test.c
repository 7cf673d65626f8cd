/* SPDX-License-Identifier: Apache-2.0 */

/* What an event adds to the counters is what it takes away again on the way back. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/testing/book-testing.h"
#include "recording/write/recorder-private.h"

static struct testing_book book;
static uint32_t shape;

static void begin(void)
{
	testing_book_open(&book);
	shape = testing_interleaved(book.writer, 64);
}

static void end(void)
{
	testing_book_deinit(&book);
}

/* Counters that are all different. */
static struct recorder_counters start(void)
{
	struct recorder_counters counters;
	uint64_t *words = (void *)&counters;

	for (size_t i = 0; i < sizeof(counters) / sizeof(*words); i++)
		words[i] = 1000000 + 1000 * i;
	return counters;
}

/* Numbers and peaks are not undone. */
static void settle(struct recorder_counters *counters, const struct recorder_counters *from)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct book_hot *hot = &counters->hot[type];

		hot->peak = from->hot[type].peak;
		hot->peak_time = from->hot[type].peak_time;
		hot->last = from->hot[type].last;
		hot->number = from->hot[type].number;
		counters->cold[type].number = from->cold[type].number;
		counters->warm[type].number = from->warm[type].number;
	}
}

UNIT(an_event_is_undone_completely)
{
	static const uint32_t flags[] = {0, BOOK_OP_AMBIGUOUS, BOOK_OP_RESIZE, BOOK_OP_CLOSED,
					 BOOK_OP_AMBIGUOUS | BOOK_OP_RESIZE};
	unsigned int changed = 0;

	begin();
	for (uint32_t op = 0; op <= BOOK_OP_MASK; op++) {
		for (size_t i = 0; i < ARRAY_SIZE(flags) * BOOK_TYPES * 2; i++) {
			const struct book_event event = {
				.time = 5,
				.op_slot = op | flags[i % ARRAY_SIZE(flags)],
				.record = {.size = 100,
					   .meta = book_meta((uint32_t)(i / 2 % BOOK_TYPES), 0, 1),
					   .shape = i % 2 ? shape : 0},
			};
			const struct recorder_counters before = start();
			struct recorder_counters counters = before;

			recorder_count(&counters, &book.reader, &event, 77);
			changed += memcmp(&counters, &before, sizeof(before)) != 0;
			recorder_uncount(&counters, &book.reader, &event);
			settle(&counters, &before);
			assert(memcmp(&counters, &before, sizeof(before)) == 0);
		}
	}
	assert(changed > 100);
	end();
}

UNIT(an_unknown_type_changes_nothing)
{
	const struct book_event event = {
		.op_slot = BOOK_OP_ALLOC,
		.record = {.size = 1, .meta = book_meta(BOOK_TYPES, 0, 1)}};
	const struct recorder_counters before = start();
	struct recorder_counters counters = before;

	begin();
	recorder_count(&counters, &book.reader, &event, 77);
	recorder_uncount(&counters, &book.reader, &event);
	assert(memcmp(&counters, &before, sizeof(before)) == 0);
	end();
}

UNIT(a_page_has_the_counters_twice)
{
	struct recorder_shard *shard = calloc(1, sizeof(*shard));
	struct book_shard *page = calloc(1, sizeof(*page));
	const struct book_checkpoint *checkpoint = &page->checkpoint[0];

	assert(shard && page);
	shard->done = 42;
	shard->table.count = 7;
	shard->counters = start();
	memset(page->hot, 0xff, sizeof(page->hot));
	recorder_count_page(shard, page);
	assert(page->head == 42 && page->slots == 7 && checkpoint->number == 42);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct recorder_counters *all = &shard->counters;

		assert(memcmp(&page->hot[type][0], &all->hot[type], sizeof(all->hot[0])) == 0);
		assert(memcmp(&checkpoint->hot[type], &all->hot[type], sizeof(all->hot[0])) == 0);
		assert(memcmp(&page->cold[type][0], &all->cold[type], sizeof(all->cold[0])) == 0);
		assert(memcmp(&page->warm[type][0], &all->warm[type], sizeof(all->warm[0])) == 0);
		assert(checkpoint->cold[type].double_frees == all->cold[type].double_frees);
		assert(checkpoint->cold[type].known == all->warm[type].known);
		assert(checkpoint->cold[type].unplaced_frees == all->warm[type].unplaced_frees);
		assert(checkpoint->occupied[type] == all->warm[type].occupied);
		assert(page->hot[type][1].number == 0 && page->hot[type][1].bytes == 0);
	}
	free(shard);
	free(page);
}
