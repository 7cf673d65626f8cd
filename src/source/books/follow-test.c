/* SPDX-License-Identifier: Apache-2.0 */

/* Following a book: its events, and how many were missed. */

#include "source/books/follow.h"

#include <stdlib.h>

#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "source/books/scan.h"

struct follow_test {
	struct testing_book book;
	struct scan_book scan;
	struct view view;
	struct log log;
	struct follow *follow;

	uint64_t events, gaps, missed, last;
};

static struct follow_test *follow_test_begin(void)
{
	struct follow_test *test = calloc(1, sizeof(*test));

	assert(test);
	testing_book_init(&test->book, TESTING_SIZE, BOOK_RING_MIN);
	testing_book_write(&test->book);
	assert(follow_new(&test->follow, &test->scan, NULL, true) == 0);
	return test;
}

static void follow_test_end(struct follow_test *test)
{
	follow_free(test->follow);
	log_deinit(&test->log);
	view_deinit(&test->view);
	reader_deinit(&test->scan.reader);
	testing_book_deinit(&test->book);
	free(test);
}

static int follow_test_take(void *context, const struct follow_event *event)
{
	struct follow_test *test = context;

	test->events += event->missed == 0;
	test->gaps += event->missed > 0;
	test->missed += event->missed;
	test->last = event->number;
	follow_apply(event);
	return 0;
}

static void follow_test_pass(struct follow_test *test, uint32_t events)
{
	const struct shard_buffer buffer = testing_buffer(0, 0x8000, 100);

	for (uint32_t i = 0; i < events; i += 2) {
		writer_alloc(test->book.writer, 0, &buffer, 0);
		writer_free_buffer(test->book.writer, 0, &buffer);
	}
}

static void follow_test_poll(struct follow_test *test)
{
	assert(follow_poll(test->follow, &test->view, &test->log, follow_test_take, test) == 0);
}

UNIT(what_was_too_fast_is_counted_and_the_totals_stay_exact)
{
	struct follow_test *test = follow_test_begin();
	const struct shard_buffer buffer = testing_buffer(0, 0x1000, 500);

	testing_book_read(&test->book);
	assert(reader_init(&test->scan.reader, &test->book.file.file) == 0);
	writer_alloc(test->book.writer, 0, &buffer, 0);
	follow_test_poll(test);
	assert(test->events == 1 && test->gaps == 0 && test->last == 1);
	follow_test_pass(test, BOOK_RING_MIN + 200);
	follow_test_poll(test);
	assert(test->events == 1 && test->gaps == 1);
	assert(test->missed == BOOK_RING_MIN + 200 && test->last == BOOK_RING_MIN + 201);
	assert(test->follow->shards[0].hot[0].bytes == 500);
	follow_test_pass(test, 10);
	follow_test_poll(test);
	assert(test->events == 11 && test->gaps == 1 && test->last == BOOK_RING_MIN + 211);
	assert(test->follow->shards[0].hot[0].bytes == 500);
	follow_test_end(test);
}
