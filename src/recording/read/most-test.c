/* SPDX-License-Identifier: Apache-2.0 */

/* What chosen buffers held, compared with every event and with the books as they were. */

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"
#include "source/books/scan.h"

#define TEST_SETS 3u
#define TEST_KEYS 100u

struct test {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_rng rng;
	struct recording *recording;
};

static void test_init(struct test *test)
{
	*test = (struct test){.rng = testing_rng_new()};
	testing_recorder_init(&test->recorder);
	testing_book_open(&test->book);
	testing_recorded_init(&test->recorded, &test->recorder, &test->book, 100);
}

static void test_deinit(struct test *test)
{
	recording_free(test->recording);
	testing_recorded_deinit(&test->recorded);
	testing_book_deinit(&test->book);
	testing_recorder_deinit(&test->recorder);
}

static void test_do(struct test *test, bool is_alloc, uint32_t key, uint64_t size, uint32_t stack)
{
	struct testing_op op = {
		.kind = is_alloc ? TESTING_ALLOC : TESTING_FREE,
		.buffer = testing_buffer(key % 2, 0x1000 + key * 0x1000, size),
	};

	op.buffer.stack = stack;
	testing_op_do(test->book.writer, &op);
}

static void test_work(struct test *test, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		test_do(test, testing_below(&test->rng, 2), testing_below(&test->rng, TEST_KEYS),
			64 * (1 + testing_below(&test->rng, 1000)), testing_below(&test->rng, 5));
}

static void test_record(struct test *test, bool has_keyframe)
{
	testing_recorded_bytes(&test->recorded);
	testing_recorded_events(&test->recorded, 0, RECORDING_EVENTS_MAX);
	if (has_keyframe)
		testing_recorded_keyframe(&test->recorded, 0);
}

static void test_open(struct test *test)
{
	char why[RECORDING_WHY_SIZE];

	testing_recorder_end(&test->recorder);
	assert(recording_open(&test->recording, test->recorder.path, why) == 0);
}

/* Of one stack, of two, and of all but one. */
static bool test_has(void *context, size_t set, const struct book_record *record)
{
	switch (set) {
	case 0:
		return record->stack == 1;
	case 1:
		return record->stack == 2 || record->stack == 3;
	default:
		return record->stack != 1;
	}
}

static const struct recording_sets test_sets = {.count = TEST_SETS, .has = test_has};

struct test_sums {
	uint64_t bytes[TEST_SETS][BOOK_TYPES];
	uint64_t most[TEST_SETS][BOOK_TYPES];
};

static int test_add(void *context, const struct recording_event *event)
{
	struct test_sums *sums = context;
	const struct book_record *record = &event->event->record;
	uint32_t op = event->event->op_slot & BOOK_OP_MASK, type = book_meta_type(record->meta);

	for (size_t i = 0; i < TEST_SETS; i++) {
		uint64_t *bytes = &sums->bytes[i][type];

		if (!test_has(NULL, i, record))
			continue;
		*bytes += op == BOOK_OP_ALLOC ? event_bytes(record) : 0;
		*bytes -= op == BOOK_OP_FREE ? event_bytes(record) : 0;
		if (*bytes > sums->most[i][type])
			sums->most[i][type] = *bytes;
	}
	return 0;
}

/* What a set holds in the book as it was. */
static uint64_t test_held(struct test *test, const struct recording_moment *moment, size_t set,
			  uint32_t type)
{
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	struct scan_book *book;
	uint64_t bytes = 0;

	assert(recording_restore(test->recording, 0, moment, &book) == 0);
	assert(view_read(&view, &book->reader, 0, VIEW_DEAD) == 0);
	for (uint32_t i = 0; i < view.segment_count; i++) {
		for (uint32_t k = 0; k < view.segments[i].count; k++) {
			const struct book_record *record = &view.segments[i].records[k];

			if (view_is_live(record) && book_meta_type(record->meta) == type &&
			    test_has(NULL, set, record))
				bytes += event_bytes(record);
		}
	}
	scan_book_free(book);
	return bytes;
}

UNIT(finds_the_most_that_each_set_held_and_when)
{
	CLEANUP(test_deinit) struct test test;
	struct recording_most most[TEST_SETS * BOOK_TYPES];
	struct test_sums sums = {0};
	bool is_exact = false;

	test_init(&test);
	for (uint32_t i = 0; i < 50; i++) {
		test_work(&test, 100);
		test_record(&test, i % 10 == 9);
	}
	test_open(&test);
	assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, NULL, test_add, &sums) ==
	       0);
	assert(recording_most(test.recording, 0, 0, &test_sets, most, &is_exact) == 0 && is_exact);
	for (size_t i = 0; i < TEST_SETS; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct recording_most *one = &most[i * BOOK_TYPES + type];

			assert(one->bytes == sums.most[i][type]);
			assert((one->bytes > 0) == (type < 2));
			if (one->bytes > 0)
				assert(test_held(&test, &one->moment, i, type) == one->bytes);
		}
	}
	assert(recording_most(test.recording, 0, 1, &test_sets, most, &is_exact) == -ENOENT);
	assert(recording_most(test.recording, 1, 0, &test_sets, most, &is_exact) == -ENOENT);
}

UNIT(begins_again_with_what_is_live_behind_a_gap)
{
	CLEANUP(test_deinit) struct test test;
	struct recording_most most[TEST_SETS * BOOK_TYPES];
	bool is_exact = true;

	test_init(&test);
	test_do(&test, true, 0, 100, 1);
	test_record(&test, true);
	/* Missed: the first one is freed, two more come, and one was higher for a moment. */
	test_do(&test, false, 0, 100, 1);
	test_do(&test, true, 2, 300, 1);
	test_do(&test, true, 4, 5000, 1);
	test_do(&test, false, 4, 5000, 1);
	testing_recorded_gap(&test.recorded, 0);
	test_do(&test, true, 6, 20, 1);
	test_do(&test, false, 2, 300, 1);
	test_record(&test, false);
	test_open(&test);
	assert(recording_most(test.recording, 0, 0, &test_sets, most, &is_exact) == 0);
	assert(!is_exact && most[0].bytes == 320);
	assert(test_held(&test, &most[0].moment, 0, 0) == 320);
}

UNIT(begins_with_what_was_live_before_the_recording)
{
	CLEANUP(test_deinit) struct test test;
	struct recording_most most[TEST_SETS * BOOK_TYPES];
	bool is_exact = true;

	test_init(&test);
	test_do(&test, true, 0, 100, 1);
	test_do(&test, true, 2, 7, 1);
	test_do(&test, false, 2, 7, 1);
	testing_recorded_bytes(&test.recorded);
	testing_recorded_gap(&test.recorded, 0);
	test_do(&test, false, 0, 100, 1);
	test_do(&test, true, 0, 60, 1);
	test_record(&test, false);
	test_open(&test);
	assert(recording_most(test.recording, 0, 0, &test_sets, most, &is_exact) == 0);
	assert(!is_exact && most[0].bytes == 100);
	assert(test_held(&test, &most[0].moment, 0, 0) == 100);
}

UNIT(knows_a_recording_by_its_first_bytes)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	test_record(&test, false);
	testing_recorder_end(&test.recorder);
	assert(recording_is_file(test.recorder.path));
	assert(!recording_is_file("/proc/self/exe") && !recording_is_file("/nowhere"));
	assert(!recording_is_file("/dev/zero"));
}
