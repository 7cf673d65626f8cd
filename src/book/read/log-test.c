/* SPDX-License-Identifier: Apache-2.0 */

/* Draining the log while its owner continues: wraps, heads that jump, heads that go back. */

#include "book/read/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"

struct ltest {
	struct testing_memory memory;
	struct reader reader;
	struct log log;
	struct log_place place;
	struct book_shard *page;

	/* Before read number `when` the head becomes `head`. */
	uint32_t reads;
	uint32_t when;
	uint64_t head;
};

static void ltest_before_read(struct testing_memory *memory)
{
	struct ltest *test = memory->context;

	if (++test->reads == test->when)
		test->page->head = test->head;
}

/* A shard with 10 events; later contents of the ring do not matter here. */
static void ltest_init(struct ltest *test)
{
	*test = (struct ltest){0};
	testing_memory_init(&test->memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&test->memory, BOOK_RING_MIN);
	for (uint64_t i = 1; i <= 10; i++) {
		struct shard_buffer buffer = testing_buffer(0, i * 64, i);

		writer_alloc(test->memory.writer, 0, &buffer, 0);
	}
	assert(reader_init(&test->reader, &test->memory.file) == 0);
	test->page = test->memory.writer->shards[0]->page;
	assert(log_find(&test->reader, test->page, 0, &test->place) == 0);
	test->memory.before_read = ltest_before_read;
	test->memory.context = test;
}

static void ltest_deinit(struct ltest *test)
{
	log_deinit(&test->log);
	reader_deinit(&test->reader);
	testing_memory_deinit(&test->memory);
}

/* Drains after the head has become @before; it becomes @after during the drain. */
static int ltest_drain(struct ltest *test, uint64_t before, uint64_t after)
{
	test->page->head = before;
	test->reads = 0;
	test->when = 3; /* head, events, head */
	test->head = after;
	return log_drain(&test->log, &test->reader);
}

UNIT(drain_reads_new_events_only)
{
	struct ltest test;

	ltest_init(&test);
	log_start(&test.log, &test.place, 4);
	assert(ltest_drain(&test, 3, 3) == 0 && test.log.count == 0);
	assert(ltest_drain(&test, 6, 6) == 0 && test.log.count == 3);
	assert(ltest_drain(&test, 6, 6) == 0 && test.log.count == 3);
	assert(ltest_drain(&test, 10, 10) == 0 && test.log.count == 7);
	for (uint64_t i = 0; i < 7; i++)
		assert(test.log.events[i].record.size == 4 + i);
	log_start(&test.log, &test.place, 1);
	assert(test.log.count == 0 && test.log.first == 1);
	ltest_deinit(&test);
}

UNIT(impossible_heads_are_refused)
{
	struct ltest test;

	ltest_init(&test);
	log_start(&test.log, &test.place, 8);
	assert(ltest_drain(&test, 6, 6) == -EBADMSG); /* 7 would be nothing new */
	assert(ltest_drain(&test, 7, 7) == 0);
	assert(ltest_drain(&test, 10, 9) == -EBADMSG); /* goes back during the read */
	assert(ltest_drain(&test, UINT64_MAX, UINT64_MAX) == -EBADMSG);
	assert(ltest_drain(&test, LOG_NUMBER_MAX + 1, LOG_NUMBER_MAX + 1) == -EBADMSG);
	assert(ltest_drain(&test, 10, UINT64_MAX) == -EBADMSG);
	assert(test.log.count == 0);
	ltest_deinit(&test);
}

/* The owner may be writing two events beyond its head: these slots must not be read. */
UNIT(a_wrapped_log_is_noticed)
{
	const uint64_t ring = BOOK_RING_MIN;
	struct ltest test;

	ltest_init(&test);
	log_start(&test.log, &test.place, 5);
	assert(ltest_drain(&test, 5 + ring, 5 + ring) == -EOVERFLOW);
	assert(ltest_drain(&test, 4 + ring, 4 + ring) == -EOVERFLOW);
	assert(ltest_drain(&test, 3 + ring, 3 + ring) == -EOVERFLOW);
	assert(ltest_drain(&test, 10, 5 + ring) == -EOVERFLOW);
	assert(ltest_drain(&test, 10, 3 + ring) == -EOVERFLOW);
	assert(test.log.count == 0);
	assert(ltest_drain(&test, 10, 2 + ring) == 0 && test.log.count == 6);
	/* Event 11 is next: 11 + ring would take its place. */
	assert(ltest_drain(&test, 8 + ring, 8 + ring) == 0);
	assert(test.log.count == 4 + ring);
	ltest_deinit(&test);
}

/* Across the end of the ring, in two reads. */
UNIT(drain_reads_around_the_end_of_the_ring)
{
	const uint64_t ring = BOOK_RING_MIN;
	struct ltest test;
	struct book_event events[8];
	struct book_event *in_book;

	ltest_init(&test);
	in_book = test.memory.writer->shards[0]->ring;
	for (uint64_t i = 0; i < ring; i++)
		in_book[i].time = i;
	assert(log_read(&test.place, &test.reader, 2 * ring - 3, 2 * ring + 4, events) == 0);
	for (uint64_t i = 0; i < 8; i++)
		assert(events[i].time == (ring - 3 + i) % ring);
	assert(log_read(&test.place, &test.reader, 5, 4, events) == 0);
	ltest_deinit(&test);
}

UNIT(a_log_that_grows_too_large_is_refused)
{
	struct ltest test;
	uint64_t head = 0;
	int r;

	ltest_init(&test);
	log_start(&test.log, &test.place, 1);
	do {
		head += 1000;
		r = ltest_drain(&test, head, head);
	} while (r == 0);
	/* A reader's memory is bounded. */
	assert(r == -ENOBUFS && test.log.count <= LOG_EVENTS_MAX);
	ltest_deinit(&test);
}

UNIT(log_positions_are_checked)
{
	struct book_shard page;
	struct log_place place;
	struct ltest test;

	ltest_init(&test);
	page = *test.page;
	assert(log_find(&test.reader, &page, 1, &place) == -EBADMSG); /* another device's */
	page.ring_events = BOOK_RING_MIN / 2;
	assert(log_find(&test.reader, &page, 0, &place) == -EBADMSG);
	page.ring_events = BOOK_RING_MAX * 2;
	assert(log_find(&test.reader, &page, 0, &place) == -EBADMSG);
	page.ring_events = BOOK_RING_MIN + 1;
	assert(log_find(&test.reader, &page, 0, &place) == -EBADMSG);
	page = *test.page;
	page.ring_unit = page.graves_unit;
	assert(log_find(&test.reader, &page, 0, &place) == -EBADMSG);
	page.ring_unit = (uint32_t)(TESTING_MEMORY_SIZE / BOOK_UNIT);
	assert(log_find(&test.reader, &page, 0, &place) == -EBADMSG);
	ltest_deinit(&test);
}
