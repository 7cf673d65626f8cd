/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever a recording lacks, the allocator has at the end what the book has. */

#include "cli/replay/replay-walk.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "model/cards/card.h"
#include "model/types.h"
#include "recording/testing/testing-recorder.h"

#define TEST_DEVICES 2u
#define TEST_KEYS 200u

struct test {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_rng rng;
	struct recording *recording;
	struct replay_walk walk;
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
	if (test->recording)
		replay_walk_deinit(&test->walk);
	recording_free(test->recording);
	testing_recorded_deinit(&test->recorded);
	testing_book_deinit(&test->book);
	testing_recorder_deinit(&test->recorder);
}

static void test_ops(struct test *test, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = testing_below(&test->rng, TEST_KEYS);
		struct testing_op op = {
			.kind = testing_below(&test->rng, 2) ? TESTING_ALLOC : TESTING_FREE,
			.device = testing_below(&test->rng, TEST_DEVICES),
			.buffer = testing_buffer(TYPES_DRAM, 0x1000 + key * 0x10000,
						 64 * (1 + testing_below(&test->rng, 1000))),
		};

		testing_op_do(test->book.writer, &op);
	}
}

static void test_events(struct test *test)
{
	testing_recorded_bytes(&test->recorded);
	for (uint32_t device = 0; device < TEST_DEVICES; device++)
		testing_recorded_events(&test->recorded, device, RECORDING_EVENTS_MAX);
}

static void test_gaps(struct test *test)
{
	for (uint32_t device = 0; device < TEST_DEVICES; device++)
		testing_recorded_gap(&test->recorded, device);
}

static void test_replay(struct test *test, const char *card)
{
	char why[RECORDING_WHY_SIZE] = "";

	testing_recorder_end(&test->recorder);
	assert(recording_open(&test->recording, test->recorder.path, why) == 0);
	test->walk = (struct replay_walk){
		.recording = test->recording,
		.card_name = card,
		.card = {.facts = card_find(card)},
	};
	assert(replay_walk(&test->walk) == 0);
}

static const struct replay_device *test_device(const struct test *test, uint32_t device)
{
	for (size_t i = 0; i < test->walk.count; i++) {
		if (test->walk.devices[i].device == device)
			return &test->walk.devices[i];
	}
	return NULL;
}

/* Slot by slot. */
static void test_compare(struct test *test)
{
	for (uint32_t number = 0; number < TEST_DEVICES; number++) {
		const struct replay_device *device = test_device(test, number);
		CLEANUP(view_deinit) struct view view = VIEW_NULL;
		struct view_iterator it = {0};
		uint64_t held = 0;

		assert(device);
		assert(view_read(&view, &test->book.reader, number, VIEW_DEAD) == 0);
		assert(view.live > 0);
		while (view_next(&view, &it)) {
			assert(view_slot(&it) < device->slots);
			assert(device->births[view_slot(&it)] == (it.record->birth | 1));
		}
		for (size_t slot = 0; slot < device->slots; slot++)
			held += device->births[slot] != 0;
		assert(held == view.live);
	}
}

UNIT(every_event_is_replayed)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	for (int i = 0; i < 20; i++) {
		test_ops(&test, 100);
		test_events(&test);
	}
	test_replay(&test, "n150");
	test_compare(&test);
	assert(!test.walk.has_failed && test.walk.missed == 0 && test.walk.from_table == 0);
	assert(test.walk.events == test.recorded.streams[0].last + test.recorded.streams[1].last);
}

UNIT(what_a_gap_hides_is_made_up_for)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	for (int i = 0; i < 20; i++) {
		test_ops(&test, 100);
		if (i % 5 == 3)
			test_gaps(&test);
		else
			test_events(&test);
	}
	test_replay(&test, "n150");
	test_compare(&test);
	assert(test.walk.missed > 0 && test.walk.from_table > 0);
	assert(test.walk.events + test.walk.missed ==
	       test.recorded.streams[0].last + test.recorded.streams[1].last);
}

UNIT(what_was_there_before_the_recording_is_taken_from_its_first_state)
{
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	test_ops(&test, 500);
	test_gaps(&test);
	test_replay(&test, "n150");
	test_compare(&test);
	assert(test.walk.events == 0 && test.walk.from_table > 0);
}

UNIT(the_first_failure_ends_it)
{
	CLEANUP(test_deinit) struct test test;
	struct testing_op op = {.kind = TESTING_ALLOC};

	test_init(&test);
	/* Two fit into a gigabyte for each of twelve banks, a third does not, and the fourth is small. */
	for (uint32_t i = 0; i < 4; i++) {
		op.buffer = testing_buffer(TYPES_DRAM, 0x1000 * (i + 1),
					   i == 3 ? 64 : UINT64_C(5) << 30);
		testing_op_do(test.book.writer, &op);
	}
	test_events(&test);
	test_replay(&test, "n150");
	assert(test.walk.has_failed && test.walk.events == 3);
	assert(test.walk.failed.number == 3 && !test.walk.failed.is_from_table);
	assert(test.walk.failed.failure.why == REFIT_FULL);
	assert(test.walk.failed.buffer.address == 0x3000);
}

UNIT(a_failure_before_the_recording_says_so)
{
	CLEANUP(test_deinit) struct test test;
	struct testing_op op = {.kind = TESTING_ALLOC};

	test_init(&test);
	op.buffer = testing_buffer(TYPES_DRAM, 0x1000, UINT64_C(50) << 30);
	testing_op_do(test.book.writer, &op);
	testing_recorded_gap(&test.recorded, 0);
	test_replay(&test, "n150");
	assert(test.walk.has_failed && test.walk.failed.is_from_table);
	assert(test.walk.failed.failure.why == REFIT_LARGE);
}

UNIT(a_book_that_cannot_be_read_is_passed_over)
{
	CLEANUP(test_deinit) struct test test;
	CLEANUP(testing_recorded_deinit) struct testing_recorded other;

	test_init(&test);
	test.book.base[0]++; /* of its magic number */
	testing_recorded_init(&other, &test.recorder, &test.book, 101);
	test.book.base[0]--;
	test_ops(&test, 100);
	testing_recorded_bytes(&other);
	for (uint32_t device = 0; device < TEST_DEVICES; device++)
		testing_recorded_events(&other, device, RECORDING_EVENTS_MAX);
	test_events(&test);
	test_replay(&test, "n150");
	test_compare(&test);
	assert(test.walk.count == TEST_DEVICES);
	for (size_t i = 0; i < test.walk.count; i++)
		assert(test.walk.devices[i].pid == 100);
	assert(test.walk.events == test.recorded.streams[0].last + test.recorded.streams[1].last);
}
