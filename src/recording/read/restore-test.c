/* SPDX-License-Identifier: Apache-2.0 */

/* Restored books are what the books were. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/read/log.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "recording/read/recording-private.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"
#include "recording/testing/testing-recording.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"
#include "source/source.h"

#define TEST_DEVICES 2u
#define TEST_STATES 400u
#define TEST_KEYS 300u

/* What a device was after an event. */
struct test_state {
	uint32_t device;
	uint64_t number;
	uint64_t digest;
	uint64_t last_stamp;
};

struct test {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_rng rng;
	struct test_state states[TEST_STATES];
	size_t count;
	struct view view;
};

static void test_init(struct test *test)
{
	*test = (struct test){.rng = testing_rng_new()};
	testing_book_open(&test->book);
	testing_recorder_init(&test->recorder);
	testing_recorded_init(&test->recorded, &test->recorder, &test->book, 77);
}

static void test_deinit(struct test *test)
{
	testing_recorded_deinit(&test->recorded);
	testing_recorder_deinit(&test->recorder);
	testing_book_deinit(&test->book);
	view_deinit(&test->view);
}

static void test_op(struct test *test)
{
	uint32_t key = testing_below(&test->rng, TEST_KEYS);
	struct testing_op op = {
		.kind = testing_below(&test->rng, 20) == 0 ? TESTING_RESET_PEAK
			: testing_below(&test->rng, 2)     ? TESTING_ALLOC
							   : TESTING_FREE,
		.device = testing_below(&test->rng, TEST_DEVICES),
		.buffer = testing_buffer(key % 3, 0x1000 + key * 0x1000,
					 64 * (1 + testing_below(&test->rng, 100))),
	};

	op.buffer.thread = 1 + testing_below(&test->rng, 5);
	op.buffer.stack = testing_below(&test->rng, 10);
	op.buffer.name = testing_below(&test->rng, TESTING_TEXTS);
	op.buffer.shape = testing_below(&test->rng, 3);
	testing_op_do(test->book.writer, &op);
}

static void test_note(struct test *test, uint32_t device)
{
	struct test_state *state = &test->states[test->count++];

	assert(test->count <= TEST_STATES);
	assert(view_read(&test->view, &test->book.reader, device, VIEW_DEAD) == 0);
	*state = (struct test_state){.device = device,
				     .number = test->view.number,
				     .digest = testing_digest(&test->view)};
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (test->view.hot[type].last > state->last_stamp)
			state->last_stamp = test->view.hot[type].last;
	}
}

/* Does something, and records it in pieces. */
static void test_work(struct test *test, size_t rounds)
{
	static const struct book_shape shapes[] = {{.size_per_bank = 2048, .banks = 12},
						   {.size_per_bank = 64}};

	for (size_t i = 0; i < 2; i++)
		assert(intern_shape(test->book.writer, &shapes[i]) == i + 1);
	/* A device without an event is in no recording. */
	for (uint32_t device = 0; device < TEST_DEVICES; device++)
		testing_op_do(test->book.writer,
			      &(struct testing_op){.kind = TESTING_ALLOC,
						   .device = device,
						   .buffer = testing_buffer(0, 0x1000, 64)});
	for (size_t i = 0; i < rounds; i++) {
		uint32_t device = testing_below(&test->rng, TEST_DEVICES);
		uint32_t ops = 1 + testing_below(&test->rng, 40);

		for (uint32_t k = 0; k < ops; k++)
			test_op(test);
		for (uint32_t d = 0; d < TEST_DEVICES; d++)
			test_note(test, d);
		if (testing_below(&test->rng, 3) != 0)
			continue;
		testing_recorded_bytes(&test->recorded);
		testing_recorded_events(&test->recorded, device,
					1 + testing_below(&test->rng, 100));
		testing_recorded_events(&test->recorded, device, RECORDING_EVENTS_MAX);
		if (testing_below(&test->rng, 4) == 0)
			testing_recorded_keyframe(&test->recorded, device);
	}
	testing_recorded_bytes(&test->recorded);
	for (uint32_t device = 0; device < TEST_DEVICES; device++)
		testing_recorded_events(&test->recorded, device, RECORDING_EVENTS_MAX);
}

static struct recording *test_open(const struct test *test)
{
	char why[RECORDING_WHY_SIZE] = "";
	struct recording *recording = NULL;

	assert(recording_open(&recording, test->recorder.path, why) == 0);
	return recording;
}

/* The ring of a restored book has the last events of the living one. */
static void test_same_log(struct test *test, struct scan_book *book, const struct test_state *state)
{
	struct book_event mine[64], theirs[64];
	struct book_shard page;
	struct log_place place;
	uint64_t from = state->number > 64 ? state->number - 63 : 1;

	assert(file_read(book->reader.file, book_shard_offset(state->device), &page,
			 sizeof(page)) == 0);
	assert(page.head == state->number);
	assert(log_find(&book->reader, &page, state->device, &place) == 0);
	assert(log_read(&place, &book->reader, from, state->number, mine) == 0);
	assert(log_find(&test->book.reader, &page, state->device, &place) == 0);
	/* Overwritten by now, or not. */
	if (state->number + place.events / 2 <= test->recorded.streams[state->device].last)
		return;
	assert(log_read(&place, &test->book.reader, from, state->number, theirs) == 0);
	for (uint64_t n = from; n <= state->number; n++) {
		struct book_event *event = &mine[n - from];

		assert(event->time == theirs[n - from].time);
		assert(event->op_slot == theirs[n - from].op_slot);
		assert(memcmp(&event->record, &theirs[n - from].record, sizeof(event->record)) ==
		       0);
	}
}

static void test_same(struct test *test, struct recording *recording,
		      const struct test_state *state)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	struct recording_moment moment = {
		.time_ns = recording_facts(recording)->end_ns,
		.book = 0,
		.device = state->device,
		.number = state->number,
	};

	assert(recording_restore(recording, 0, &moment, &book) == 0);
	assert(view_read(&test->view, &book->reader, state->device, VIEW_DEAD) == 0);
	assert(test->view.number == state->number);
	assert(test->view.adds_up);
	assert(testing_digest(&test->view) == state->digest);
	test_same_log(test, book, state);
}

UNIT(is_the_same_after_any_event)
{
	CLEANUP(test_deinit) struct test test;
	CLEANUP(recording_cleanup) struct recording *recording = NULL;

	test_init(&test);
	test_work(&test, 150);
	testing_recorder_end(&test.recorder);
	recording = test_open(&test);
	assert(recording_facts(recording)->is_complete);
	assert(recording_facts(recording)->missed == 0);
	for (size_t i = 0; i < test.count; i++)
		test_same(&test, recording, &test.states[i]);
}

UNIT(is_the_same_in_a_file_without_an_end)
{
	CLEANUP(test_deinit) struct test test;
	CLEANUP(recording_cleanup) struct recording *recording = NULL;

	test_init(&test);
	test_work(&test, 50);
	recording = test_open(&test);
	assert(!recording_facts(recording)->is_complete);
	for (size_t i = 0; i < test.count; i++)
		test_same(&test, recording, &test.states[i]);
}

/* The same with the real recorder, which decides itself what it writes when. */
UNIT(is_the_same_with_the_real_recorder)
{
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	struct testing_recording real;
	struct test_state states[TEST_STATES];
	char path[256], why[RECORDING_WHY_SIZE];
	size_t count = 0;

	snprintf(path, sizeof(path), "%s/real.ttmem", getenv("TMPDIR"));
	testing_recording_start(&real, path, 4096, false);
	for (uint32_t round = 0; round < 100; round++) {
		unsigned int wait;

		testing_recording_act(&real, 1 + testing_below(&real.rng, 400));
		if (testing_below(&real.rng, 3) == 0)
			assert(recorder_round(real.recorder, &wait) == 0);
		for (uint32_t device = 0; device < real.devices; device++) {
			if (count == TEST_STATES ||
			    view_read(&view, &real.book.reader, device, VIEW_DEAD) < 0)
				continue;
			states[count++] = (struct test_state){.device = device,
							      .number = view.number,
							      .digest = testing_digest(&view)};
		}
	}
	testing_recording_finish(&real, true);
	assert(recording_open(&recording, path, why) == 0);
	assert(recording_facts(recording)->missed == 0 && count > 50);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
		struct recording_moment moment = {
			.time_ns = recording_facts(recording)->end_ns,
			.device = states[i].device,
			.number = states[i].number,
		};

		assert(recording_restore(recording, 0, &moment, &book) == 0);
		assert(!book->alive);
		assert(view_read(&view, &book->reader, states[i].device, VIEW_DEAD) == 0);
		assert(view.number == states[i].number && view.adds_up);
		assert(testing_digest(&view) == states[i].digest);
	}
	testing_recording_deinit(&real);
}

UNIT(takes_no_more_memory_than_the_recording_may)
{
	CLEANUP(test_deinit) struct test test;
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	struct recording_moment end = {.book = RECORDING_NONE, .device = RECORDING_NONE};
	struct scan_book *book = NULL;
	struct source *source = NULL;
	uint64_t room;

	test_init(&test);
	test_work(&test, 20);
	recording = test_open(&test);
	end.time_ns = recording_facts(recording)->end_ns;
	assert(recording_source_new(&source, recording, &end) == 0);
	source_free(source);
	room = recording->room;
	recording->room = 4096;
	assert(recording_restore(recording, 0, &end, &book) == -EFBIG);
	assert(recording_source_new(&source, recording, &end) == -EFBIG);
	recording->room = room;
	assert(recording_restore(recording, 0, &end, &book) == 0);
	scan_book_free(book);
}

UNIT(bytes_after_what_is_no_bytes_are_restored)
{
	CLEANUP(test_deinit) struct test test;
	const struct recording_filter all = RECORDING_FILTER_ALL;
	struct testing_op op = {TESTING_ALLOC, .buffer = testing_buffer(0, 0x1000, 64)};
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	struct recording_moment end;
	struct scan_book *book = NULL;
	char why[RECORDING_WHY_SIZE] = "";

	test_init(&test);
	testing_op_do(test.book.writer, &op);
	testing_recorded_bytes(&test.recorded);
	testing_recorded_json(&test.recorded, RECORDING_NAMES, "{}");
	(void)intern_string(test.book.writer, "later", 100);
	testing_recorded_bytes(&test.recorded);
	testing_recorded_events(&test.recorded, 0, RECORDING_EVENTS_MAX);
	testing_recorder_end(&test.recorder);
	assert(recording_open(&recording, test.recorder.path, why) == 0);
	assert(recording_find(recording, "end", &all, &end, why) == 0);
	assert(recording_restore(recording, 0, &end, &book) == 0);
	assert(reader_find_string(&book->reader, "later", 0) != 0);
	scan_book_free(book);
}
