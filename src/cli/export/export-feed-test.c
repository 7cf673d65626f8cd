/* SPDX-License-Identifier: Apache-2.0 */

/* Whoever adds up what a feed passes on has what the book has, whatever is missing from the recording. */

#include "cli/export/export-feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "cli/export/format/export-form.h"
#include "model/filter.h"
#include "recording/testing/testing-recorder.h"

#define TEST_BOOKS 2u
#define TEST_DEVICES 2u
#define TEST_KEYS 100u

struct test {
	struct testing_book books[TEST_BOOKS];
	struct testing_recorder recorder;
	struct testing_recorded recorded[TEST_BOOKS];
	struct testing_rng rng;
};

/* A tool that only adds up. */
struct test_sums {
	uint64_t bytes[TEST_BOOKS][TEST_DEVICES][BOOK_TYPES];
	uint64_t used[TEST_BOOKS][TEST_DEVICES][BOOK_TYPES];
	uint64_t live, calls, gaps, last_ns;
};

static void test_event(void *state, const struct export_event *event)
{
	struct test_sums *sums = state;
	uint64_t *bytes = &sums->bytes[event->process][event->device][event->type];

	assert(event->time_ns >= sums->last_ns);
	sums->last_ns = event->time_ns;
	sums->gaps += event->kind == EXPORT_GAP;
	if (event->kind != EXPORT_CALL)
		return;
	sums->calls++;
	sums->live += event->number == 0;
	if (event->op == BOOK_OP_ALLOC)
		*bytes += event->bytes;
	if (event->op == BOOK_OP_FREE) {
		assert(*bytes >= event->bytes);
		*bytes -= event->bytes;
	}
	sums->used[event->process][event->device][event->type] = event->used;
}

static const struct export_form test_form = {.name = "test", .event = test_event};

static void test_init(struct test *test)
{
	*test = (struct test){.rng = testing_rng_new()};
	testing_recorder_init(&test->recorder);
	for (uint32_t i = 0; i < TEST_BOOKS; i++)
		testing_book_open(&test->books[i]);
}

static void test_start(struct test *test)
{
	for (uint32_t i = 0; i < TEST_BOOKS; i++)
		testing_recorded_init(&test->recorded[i], &test->recorder, &test->books[i],
				      100 + i);
}

static void test_deinit(struct test *test)
{
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_recorded_deinit(&test->recorded[i]);
		testing_book_deinit(&test->books[i]);
	}
	testing_recorder_deinit(&test->recorder);
}

static void test_act(struct test *test, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = testing_below(&test->rng, TEST_KEYS);
		struct testing_op op = {
			.kind = testing_below(&test->rng, 2) ? TESTING_ALLOC : TESTING_FREE,
			.device = testing_below(&test->rng, TEST_DEVICES),
			.buffer = testing_buffer(key % 3, 0x1000 + key * 0x1000,
						 64 * (1 + testing_below(&test->rng, 1000))),
		};

		testing_op_do(test->books[testing_below(&test->rng, TEST_BOOKS)].writer, &op);
	}
}

static void test_record(struct test *test)
{
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_recorded_bytes(&test->recorded[i]);
		for (uint32_t device = 0; device < TEST_DEVICES; device++)
			testing_recorded_events(&test->recorded[i], device, RECORDING_EVENTS_MAX);
	}
}

/* As if all that has happened since the last time had been missed. */
static void test_miss(struct test *test)
{
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_recorded_bytes(&test->recorded[i]);
		for (uint32_t device = 0; device < TEST_DEVICES; device++)
			testing_recorded_gap(&test->recorded[i], device);
	}
}

static void test_feed(struct test *test, const struct filter *filter, struct test_sums *ret_sums)
{
	struct recording *recording = NULL;
	struct recording_moment end;
	const struct export_target target = {.out = stdout};
	struct export_feed *feed;
	char why[RECORDING_WHY_SIZE];

	testing_recorder_end(&test->recorder);
	assert(recording_open(&recording, test->recorder.path, why) == 0);
	assert(recording_find(recording, "end", &RECORDING_FILTER_ALL, &end, why) == 0);
	feed = export_feed_new(recording, filter, &end);
	*ret_sums = (struct test_sums){.calls = 0};
	assert(export_feed_course(feed, &test_form, ret_sums, &target) == 0);
	export_feed_free(feed);
	recording_free(recording);
}

static void test_check(struct test *test, uint32_t book, const struct test_sums *sums)
{
	struct view view = VIEW_NULL;

	for (uint32_t device = 0; device < TEST_DEVICES; device++) {
		assert(view_read(&view, &test->books[book].reader, device, VIEW_DEAD) == 0);
		for (uint32_t type = 0; type < 3; type++) {
			assert(sums->bytes[book][device][type] == view.hot[type].bytes);
			assert(sums->used[book][device][type] == view.hot[type].bytes);
		}
	}
	view_deinit(&view);
}

UNIT(sums_are_right_from_the_beginning)
{
	struct test_sums sums;
	struct test test;

	test_init(&test);
	test_start(&test);
	for (uint32_t i = 0; i < 10; i++) {
		test_act(&test, 100);
		test_record(&test);
	}
	test_feed(&test, &(struct filter){.pid = 0}, &sums);
	assert(sums.live == 0 && sums.gaps == 0 && sums.calls > 500);
	for (uint32_t book = 0; book < TEST_BOOKS; book++)
		test_check(&test, book, &sums);
	test_deinit(&test);
}

UNIT(sums_are_right_after_gaps)
{
	struct test_sums sums;
	struct test test;

	test_init(&test);
	test_start(&test);
	for (uint32_t i = 0; i < 5; i++) {
		test_act(&test, 300);
		test_record(&test);
		test_act(&test, 300);
		test_miss(&test);
	}
	test_feed(&test, &(struct filter){.pid = 0}, &sums);
	assert(sums.gaps == 5 * TEST_BOOKS * TEST_DEVICES && sums.live == 0);
	for (uint32_t book = 0; book < TEST_BOOKS; book++)
		test_check(&test, book, &sums);
	test_deinit(&test);
}

UNIT(what_was_live_before_the_recording_comes_first)
{
	struct test_sums sums;
	struct test test;

	test_init(&test);
	test_start(&test);
	test_act(&test, 1000);
	test_miss(&test);
	test_act(&test, 1000);
	test_record(&test);
	test_feed(&test, &(struct filter){.pid = 0}, &sums);
	for (uint32_t book = 0; book < TEST_BOOKS; book++)
		test_check(&test, book, &sums);
	test_deinit(&test);
}

UNIT(only_the_process_that_is_wanted)
{
	struct test_sums sums;
	struct test test;

	test_init(&test);
	test_start(&test);
	test_act(&test, 1000);
	test_record(&test);
	test_feed(&test, &(struct filter){.pid = 101}, &sums);
	for (uint32_t device = 0; device < TEST_DEVICES; device++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			assert(sums.used[0][device][type] == 0);
	}
	test_check(&test, 1, &sums);
	test_deinit(&test);
}
