/* SPDX-License-Identifier: Apache-2.0 */

/* Moments as users write them. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "book/format/book-clock.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"
#include "source/books/scan.h"

struct test {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct recording *recording;
	struct recording_moment found;
	char why[RECORDING_WHY_SIZE];
};

static void test_alloc(struct test *test, uint64_t address, uint64_t size, const char *phase)
{
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, address, size)};

	op.buffer.phase = phase ? intern_string(test->book.writer, phase, strlen(phase)) : 0;
	testing_op_do(test->book.writer, &op);
}

static void test_free(struct test *test, uint64_t address)
{
	struct testing_op op = {.kind = TESTING_FREE, .buffer = testing_buffer(0, address, 0)};

	testing_op_do(test->book.writer, &op);
}

/* Clocks have ticks: what comes next must not have the same stamp. */
static void test_tick(const struct test *test)
{
	uint64_t now = book_clock_read(test->book.clock);

	while (book_clock_read(test->book.clock) == now)
		;
}

static void test_mark(struct test *test, const char *name)
{
	writer_mark(test->book.writer, intern_string(test->book.writer, name, strlen(name)), 1, 0);
	test_tick(test);
}

static void test_fail(struct test *test)
{
	struct testing_op failed = {.kind = TESTING_FAILED,
				    .buffer = testing_buffer(0, 0, UINT64_C(1) << 30)};

	testing_op_do(test->book.writer, &failed);
	test_tick(test);
}

static void test_begin(struct test *test)
{
	*test = (struct test){.recording = NULL};
	testing_book_open(&test->book);
	testing_recorder_init(&test->recorder);
	testing_recorded_init(&test->recorded, &test->recorder, &test->book, 77);
}

static void test_open(struct test *test)
{
	testing_recorder_end(&test->recorder);
	assert(recording_open(&test->recording, test->recorder.path, test->why) == 0);
}

/* Events 1 to 5: two in a phase, then a mark, the peak, a failure, and one more. */
static void test_init(struct test *test)
{
	test_begin(test);
	test_alloc(test, 0x1000, 100, "load");
	test_alloc(test, 0x2000, 100, "load");
	test_mark(test, "loaded");
	test_alloc(test, 0x3000, 1000, NULL);
	test_free(test, 0x3000);
	test_fail(test);
	test_alloc(test, 0x4000, 100, NULL);
	testing_recorded_bytes(&test->recorded);
	testing_recorded_events(&test->recorded, 0, RECORDING_EVENTS_MAX);
	test_open(test);
}

static void test_deinit(struct test *test)
{
	recording_free(test->recording);
	testing_recorded_deinit(&test->recorded);
	testing_recorder_deinit(&test->recorder);
	testing_book_deinit(&test->book);
}

static int test_find(struct test *test, const char *text)
{
	return recording_find(test->recording, text, &RECORDING_FILTER_ALL, &test->found,
			      test->why);
}

static int test_count(void *context, const struct recording_event *event)
{
	*(uint64_t *)context = event->number;
	return 0;
}

/* The number of the last event before the moment that was found. */
static uint64_t test_number(struct test *test, const char *text)
{
	uint64_t number = 0;

	assert(test_find(test, text) == 0);
	assert(recording_walk(test->recording, &RECORDING_FILTER_ALL, NULL, &test->found,
			      test_count, &number) == 0);
	return number;
}

UNIT(finds_start_and_end)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	assert(test_find(&test, "start") == 0);
	assert(test.found.time_ns == recording_facts(test.recording)->start_ns);
	assert(test_number(&test, "end") == 6);
}

UNIT(finds_marks_phases_the_peak_and_the_failure)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	assert(test_number(&test, "loaded") == 2);
	assert(test_number(&test, "load") == 2);
	assert(test_number(&test, "peak") == 3);
	assert(test_number(&test, "failed") == 5);
}

static struct book_incident test_failures(struct test *test, const char *text)
{
	struct book_incident incident;
	struct scan_book *book;

	assert(test_find(test, text) == 0);
	assert(recording_restore(test->recording, 0, &test->found, &book) == 0);
	assert(reader_incident(&book->reader, BOOK_INCIDENT_ALLOC_FAILED, 0, &incident) == 0);
	scan_book_free(book);
	return incident;
}

/* Bytes are recorded with events, for all of a second: what they count may be after the moment. */
UNIT(does_not_count_repetitions_that_were_later)
{
	CLEANUP(test_deinit) struct test test;
	struct book_incident then, later;

	test_begin(&test);
	test_fail(&test);
	test_mark(&test, "first");
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	test_fail(&test);
	test_fail(&test);
	test_mark(&test, "third");
	test_fail(&test);
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	test_open(&test);
	then = test_failures(&test, "failed");
	assert(then.count == 1 && then.last_time == then.second.time);
	then = test_failures(&test, "third");
	assert(then.count == 1 && then.last_time == then.second.time);
	later = test_failures(&test, "end");
	assert(later.count == 4 && later.last_time > then.last_time);
}

static uint64_t test_closed(struct scan_book *book, uint32_t device)
{
	struct book_device declared;

	assert(reader_device(&book->reader, device, &declared) == 0);
	return declared.closed_time;
}

/* Bytes of the end of a chunk name marks and closed devices that were not there at its beginning. */
UNIT(has_no_marks_and_closed_devices_that_were_later)
{
	CLEANUP(test_deinit) struct test test;
	const struct writer_device device = {.arch = "blackhole"};
	struct scan_book *book;

	test_begin(&test);
	writer_declare(test.book.writer, 0, &device);
	test_alloc(&test, 0x1000, 100, NULL);
	test_mark(&test, "before");
	test_free(&test, 0x1000);
	writer_close_device(test.book.writer, 0);
	test_mark(&test, "after");
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	test_open(&test);
	assert(test_find(&test, "before") == 0);
	assert(recording_restore(test.recording, 0, &test.found, &book) == 0);
	assert(book->reader.header.mark_count == 1 && test_closed(book, 0) == 0);
	scan_book_free(book);
	assert(test_find(&test, "end") == 0);
	assert(recording_restore(test.recording, 0, &test.found, &book) == 0);
	assert(book->reader.header.mark_count == 2 && test_closed(book, 0) > 0);
	scan_book_free(book);
}

UNIT(finds_times_since_the_start)
{
	CLEANUP(test_deinit) struct test test;
	uint64_t start;

	test_init(&test);
	start = recording_facts(test.recording)->start_ns;
	assert(test_find(&test, "0") == 0 && test.found.time_ns == start);
	assert(test_find(&test, "0.000001") == 0 && test.found.time_ns == start + 1000);
	assert(test_find(&test, "0s") == 0 && test_find(&test, "0m0.000001s") == 0);
	assert(test.found.time_ns == start + 1000);
	assert(test_find(&test, "2h") == -ENOENT && strstr(test.why, "ended before"));
}

UNIT(finds_the_time_of_day)
{
	CLEANUP(test_deinit) struct test test;
	char text[32];
	struct tm local;
	time_t now;

	test_init(&test);
	now = (time_t)(recording_facts(test.recording)->start_ns / NS_PER_S);
	assert(localtime_r(&now, &local));
	strftime(text, sizeof(text), "%H:%M:%S", &local);
	assert(test_find(&test, text) == 0);
	assert(test.found.time_ns == recording_facts(test.recording)->start_ns);
}

UNIT(lists_marks_if_there_is_none_of_that_name)
{
	static const char *const unknown[] = {"nothing", "1x", "25:00", "-1", "", "1e3", "12:30pm"};
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert(test_find(&test, unknown[i]) == -ENOENT);
		assert(strstr(test.why, "loaded") && !strchr(test.why, '\n'));
	}
}

UNIT(finds_marks_that_the_book_has_long_overwritten)
{
	CLEANUP(test_deinit) struct test test = {.recording = NULL};
	char name[32];

	testing_book_open(&test.book);
	testing_recorder_init(&test.recorder);
	testing_recorded_init(&test.recorded, &test.recorder, &test.book, 77);
	for (uint32_t i = 1; i <= 3 * BOOK_MARKS; i++) {
		test_alloc(&test, 0x1000 * i, 100, NULL);
		snprintf(name, sizeof(name), "step %" PRIu32, i);
		test_mark(&test, name);
		if (i % 100 == 0) {
			testing_recorded_bytes(&test.recorded);
			testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
		}
	}
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	testing_recorder_end(&test.recorder);
	assert(recording_open(&test.recording, test.recorder.path, test.why) == 0);
	for (uint32_t i = 1; i <= 3 * BOOK_MARKS; i += 61) {
		snprintf(name, sizeof(name), "step %" PRIu32, i);
		assert(test_number(&test, name) == i);
	}
}
