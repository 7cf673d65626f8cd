/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes over time, from the index alone. */

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/format/book-clock.h"
#include "book/testing/book-testing.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"

struct test {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct recording *recording;
};

static void test_deinit(struct test *test)
{
	recording_free(test->recording);
	testing_recorded_deinit(&test->recorded);
	testing_recorder_deinit(&test->recorder);
	testing_book_deinit(&test->book);
}

static void test_do(struct test *test, uint32_t kind, uint64_t address, uint64_t size)
{
	const struct testing_op op = {.kind = kind, .buffer = testing_buffer(1, address, size)};
	uint64_t now = book_clock_read(test->book.clock);

	testing_op_do(test->book.writer, &op);
	while (book_clock_read(test->book.clock) == now)
		; /* no two events have the same time */
}

/* The time of the first event and of the last. */
static int test_span(void *context, const struct recording_event *event)
{
	struct recording_span *span = context;

	if (span->from_ns == 0)
		span->from_ns = event->time_ns;
	span->to_ns = event->time_ns;
	return 0;
}

UNIT(a_chunk_shows_its_peak_in_every_step_that_it_covers)
{
	CLEANUP(test_deinit) struct test test = {.recording = NULL};
	struct recording_sample samples[4];
	struct recording_span span = {0};
	char why[RECORDING_WHY_SIZE];

	testing_book_open(&test.book);
	testing_recorder_init(&test.recorder);
	testing_recorded_init(&test.recorded, &test.recorder, &test.book, 77);
	test_do(&test, TESTING_ALLOC, 0x1000, 100);
	test_do(&test, TESTING_ALLOC, 0x2000, 1000);
	test_do(&test, TESTING_FREE, 0x2000, 0);
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	testing_recorder_end(&test.recorder);
	assert(recording_open(&test.recording, test.recorder.path, why) == 0);
	assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, NULL, test_span,
			      &span) == 0);
	assert(span.from_ns < span.to_ns);
	assert(recording_timeline(test.recording, &RECORDING_FILTER_ALL, &span, samples, 4) == 0);
	for (size_t i = 0; i < 4; i++)
		assert(samples[i].high[1] == 1100);
	assert(samples[3].bytes[1] == 100);
}
