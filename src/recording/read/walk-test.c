/* SPDX-License-Identifier: Apache-2.0 */

/* Walks, peaks, timelines and sites of several processes, compared with all their events. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"
#include "recording/testing/testing-recording.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define TEST_BOOKS 2u
#define TEST_DEVICES 2u
#define TEST_KEYS 200u

struct test {
	struct testing_book books[TEST_BOOKS];
	struct testing_recorder recorder;
	struct testing_recorded recorded[TEST_BOOKS];
	struct testing_rng rng;
	struct recording *recording;
};

static void test_init(struct test *test)
{
	*test = (struct test){.rng = testing_rng_new()};
	testing_recorder_init(&test->recorder);
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_book_open(&test->books[i]);
		testing_recorded_init(&test->recorded[i], &test->recorder, &test->books[i],
				      100 + i);
	}
}

static void test_deinit(struct test *test)
{
	recording_free(test->recording);
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_recorded_deinit(&test->recorded[i]);
		testing_book_deinit(&test->books[i]);
	}
	testing_recorder_deinit(&test->recorder);
}

static void test_op(struct test *test)
{
	uint32_t key = testing_below(&test->rng, TEST_KEYS);
	struct testing_op op = {
		.kind = testing_below(&test->rng, 2) ? TESTING_ALLOC : TESTING_FREE,
		.device = testing_below(&test->rng, TEST_DEVICES),
		.buffer = testing_buffer(key % 3, 0x1000 + key * 0x1000,
					 64 * (1 + testing_below(&test->rng, 1000))),
	};

	op.buffer.stack = testing_below(&test->rng, 5);
	testing_op_do(test->books[testing_below(&test->rng, TEST_BOOKS)].writer, &op);
}

static void test_record(struct test *test, bool has_keyframe)
{
	for (uint32_t i = 0; i < TEST_BOOKS; i++) {
		testing_recorded_bytes(&test->recorded[i]);
		for (uint32_t device = 0; device < TEST_DEVICES; device++) {
			testing_recorded_events(&test->recorded[i], device, RECORDING_EVENTS_MAX);
			if (has_keyframe)
				testing_recorded_keyframe(&test->recorded[i], device);
		}
	}
}

static void test_work(struct test *test)
{
	char why[RECORDING_WHY_SIZE] = "";

	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 100; k++)
			test_op(test);
		test_record(test, i % 10 == 9);
	}
	testing_recorder_end(&test->recorder);
	assert(recording_open(&test->recording, test->recorder.path, why) == 0);
}

/* All events in one list, and what they say by the simplest means. */
struct test_seen {
	const struct recording_filter *filter;
	uint64_t count, last_ns;
	uint64_t numbers[TEST_BOOKS][TEST_DEVICES];
	uint64_t bytes[TEST_BOOKS][TEST_DEVICES][BOOK_TYPES];
	uint64_t peak;
	uint64_t gaps;
	const struct recording_moment *until; /* ends after this event; NULL = it does not */
};

static uint64_t test_sum(const struct test_seen *seen)
{
	uint64_t sum = 0;

	for (uint32_t book = 0; book < TEST_BOOKS; book++) {
		for (uint32_t device = 0; device < TEST_DEVICES; device++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				if (!seen->filter->types || seen->filter->types >> type & 1)
					sum += seen->bytes[book][device][type];
			}
		}
	}
	return sum;
}

static int test_see(void *context, const struct recording_event *event)
{
	struct test_seen *seen = context;
	uint64_t *number = &seen->numbers[event->book][event->device];

	assert(event->time_ns >= seen->last_ns);
	seen->last_ns = event->time_ns;
	if (event->gap) {
		assert(event->number == *number + event->gap->events);
		*number = event->number;
		seen->gaps++;
		return 0;
	}
	assert(event->number == *number + 1);
	*number = event->number;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		seen->bytes[event->book][event->device][type] = event->hot[type].bytes;
	seen->count++;
	if (test_sum(seen) > seen->peak)
		seen->peak = test_sum(seen);
	return seen->until && seen->until->book == event->book &&
	       seen->until->device == event->device && seen->until->number == event->number;
}

UNIT(walks_over_every_event_in_order)
{
	CLEANUP(test_deinit) struct test test;
	struct test_seen seen = {.filter = &RECORDING_FILTER_ALL};
	struct view view = VIEW_NULL;

	test_init(&test);
	test_work(&test);
	assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, NULL, test_see, &seen) ==
	       0);
	assert(seen.count == recording_facts(test.recording)->events);
	for (uint32_t book = 0; book < TEST_BOOKS; book++) {
		for (uint32_t device = 0; device < TEST_DEVICES; device++) {
			assert(view_read(&view, &test.books[book].reader, device, VIEW_DEAD) == 0);
			assert(seen.numbers[book][device] == view.number);
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				assert(seen.bytes[book][device][type] == view.hot[type].bytes);
		}
	}
	view_deinit(&view);
}

UNIT(walks_from_one_moment_to_another)
{
	CLEANUP(test_deinit) struct test test;
	const struct recording_facts *facts;

	test_init(&test);
	test_work(&test);
	facts = recording_facts(test.recording);
	for (uint32_t i = 0; i < 20; i++) {
		struct recording_moment cut = {
			.time_ns = facts->start_ns +
				   testing_random(&test.rng) % (facts->end_ns - facts->start_ns),
			.book = RECORDING_NONE,
			.device = RECORDING_NONE,
		};
		struct test_seen seen = {.filter = &RECORDING_FILTER_ALL};
		uint64_t before;

		assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, &cut, test_see,
				      &seen) == 0);
		before = seen.count;
		assert(seen.last_ns <= cut.time_ns);
		seen.last_ns = 0;
		/* The second half goes on where the first one ended: see test_see(). */
		assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, &cut, NULL, test_see,
				      &seen) == 0);
		assert(before <= facts->events && seen.count == facts->events);
	}
}

UNIT(has_the_peak_of_all_processes_together)
{
	static const struct recording_filter filters[] = {
		{.device = RECORDING_NONE},
		{.device = RECORDING_NONE, .types = 1},
		{.device = 1},
		{.device = RECORDING_NONE, .pid = 101},
		{.device = 0, .pid = 100, .types = 6},
	};
	CLEANUP(test_deinit) struct test test;

	test_init(&test);
	test_work(&test);
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		struct test_seen seen = {.filter = &filters[i]};
		struct recording_filter all_types = filters[i];
		struct recording_moment moment;
		uint64_t bytes;

		all_types.types = 0;
		assert(recording_walk(test.recording, &all_types, NULL, NULL, test_see, &seen) ==
		       0);
		assert(recording_peak(test.recording, &filters[i], &moment, &bytes) == 0);
		assert(bytes == seen.peak && bytes > 0);
		/* Another moment may be as high; what counts is what there was at this one. */
		seen = (struct test_seen){.filter = &filters[i]};
		/* A moment without an event is cut by time; other events may have the time of one. */
		if (moment.book == RECORDING_NONE) {
			assert(recording_walk(test.recording, &all_types, NULL, &moment, test_see,
					      &seen) == 0);
		} else {
			seen.until = &moment;
			assert(recording_walk(test.recording, &all_types, NULL, NULL, test_see,
					      &seen) == 1);
		}
		assert(test_sum(&seen) == bytes);
	}
}

UNIT(draws_the_timeline_from_the_index)
{
	struct recording_sample samples[64];
	CLEANUP(test_deinit) struct test test;
	uint64_t bytes, high = 0, end = 0, last = 0;
	struct recording_moment moment;
	struct test_seen seen = {.filter = &RECORDING_FILTER_ALL};
	const struct recording_filter one = {.device = 0, .pid = 100, .types = 2};

	test_init(&test);
	test_work(&test);
	assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, NULL, test_see, &seen) ==
	       0);
	assert(recording_timeline(test.recording, &RECORDING_FILTER_ALL, NULL, samples, 64) == 0);
	for (size_t i = 0; i < 64; i++) {
		assert(samples[i].time_ns > last);
		last = samples[i].time_ns;
	}
	assert(last == recording_facts(test.recording)->end_ns);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		end += samples[63].bytes[type];
	assert(end == test_sum(&seen));
	/* Of one device and one type it is exact. */
	assert(recording_timeline(test.recording, &one, NULL, samples, 64) == 0);
	assert(recording_peak(test.recording, &one, &moment, &bytes) == 0);
	for (size_t i = 0; i < 64; i++) {
		assert(samples[i].high[1] >= samples[i].bytes[1] && samples[i].high[0] == 0);
		high = samples[i].high[1] > high ? samples[i].high[1] : high;
	}
	assert(high == bytes);
}

/* Of the second book nothing is recorded but how it was after events that were missed. */
UNIT(what_was_before_a_book_is_not_known_and_not_0)
{
	const struct testing_op op = {TESTING_ALLOC, .buffer = testing_buffer(1, 0x1000, 64)};
	struct recording_filter filter = {.device = 0, .pid = 101, .types = 2};
	CLEANUP(test_deinit) struct test test;
	struct recording_sample samples[64];
	char why[RECORDING_WHY_SIZE] = "";
	size_t unknown = 0;

	test_init(&test);
	testing_op_do(test.books[0].writer, &op);
	testing_op_do(test.books[1].writer, &op);
	testing_recorded_bytes(&test.recorded[0]);
	testing_recorded_events(&test.recorded[0], 0, RECORDING_EVENTS_MAX);
	(void)usleep(2000); /* so that it is in another step */
	testing_recorded_bytes(&test.recorded[1]);
	testing_recorded_gap(&test.recorded[1], 0);
	testing_recorder_end(&test.recorder);
	assert(recording_open(&test.recording, test.recorder.path, why) == 0);
	assert(recording_timeline(test.recording, &filter, NULL, samples, 64) == 0);
	for (size_t i = 0; i<64; unknown += samples[i++].unknown> 0)
		assert(!samples[i].unknown || samples[i].bytes[1] == 0);
	assert(unknown > 0 && unknown < 64 && samples[63].bytes[1] == 64);
	filter.pid = 100; /* its book is there from its first event on */
	assert(recording_timeline(test.recording, &filter, NULL, samples, 64) == 0);
	for (size_t i = 0; i < 64; i++)
		assert(!samples[i].unknown);
}

struct test_exact {
	const struct recording_sample *samples;
	uint64_t bytes;
	size_t step;
};

/* The last event of each step says what its sample has. */
static int test_compare(void *context, const struct recording_event *event)
{
	struct test_exact *exact = context;

	while (event->time_ns >= exact->samples[exact->step].time_ns && exact->step < 63)
		assert(exact->samples[exact->step++].bytes[1] == exact->bytes);
	exact->bytes = event->hot[1].bytes;
	return 0;
}

UNIT(refines_the_timeline_by_events)
{
	struct recording_sample samples[64];
	struct test_exact exact = {.samples = samples};
	CLEANUP(test_deinit) struct test test;
	const struct recording_filter one = {.device = 0, .pid = 100};
	const struct recording_facts *facts;
	struct recording_span span;

	test_init(&test);
	test_work(&test);
	facts = recording_facts(test.recording);
	span = (struct recording_span){facts->start_ns, facts->end_ns};
	assert(recording_timeline(test.recording, &one, &span, samples, 64) == 0);
	assert(recording_timeline_refine(test.recording, &one, &span, samples, 64) == 0);
	assert(recording_walk(test.recording, &one, NULL, NULL, test_compare, &exact) == 0);
	assert(exact.step > 0 && exact.bytes > 0);
}

/* What was in use at the start of a step, and the highest within it. */
struct test_high {
	uint64_t from_ns, to_ns;
	uint64_t bytes[BOOK_TYPES];
};

static int test_highest(void *context, const struct recording_event *event)
{
	struct test_high *high = context;

	if (event->time_ns >= high->to_ns)
		return 1;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (event->time_ns < high->from_ns || high->bytes[type] < event->hot[type].bytes)
			high->bytes[type] = event->hot[type].bytes;
	}
	return 0;
}

UNIT(what_was_before_a_part_is_not_in_its_first_step)
{
	struct recording_sample samples[32];
	CLEANUP(test_deinit) struct test test;
	const struct recording_filter one = {.device = 0, .pid = 100};
	const struct recording_facts *facts;

	test_init(&test);
	test_work(&test);
	facts = recording_facts(test.recording);
	for (uint32_t i = 1; i < 16; i++) {
		uint64_t step = (facts->end_ns - facts->start_ns) / 16 * (16 - i) / 32;
		struct recording_span span = {.from_ns = facts->end_ns - 32 * step,
					      .to_ns = facts->end_ns};
		struct test_high high = {span.from_ns, span.from_ns + step, {0}};

		assert(recording_timeline(test.recording, &one, &span, samples, 32) == 0);
		assert(recording_timeline_refine(test.recording, &one, &span, samples, 32) == 0);
		assert(recording_walk(test.recording, &one, NULL, NULL, test_highest, &high) >= 0);
		assert(memcmp(samples[0].high, high.bytes, sizeof(high.bytes)) == 0);
	}
}

UNIT(draws_a_part_of_the_timeline_as_the_whole)
{
	struct recording_sample whole[64], half[32];
	CLEANUP(test_deinit) struct test test;
	const struct recording_facts *facts;
	struct recording_span span;

	test_init(&test);
	test_work(&test);
	facts = recording_facts(test.recording);
	assert(recording_timeline(test.recording, &RECORDING_FILTER_ALL, NULL, whole, 64) == 0);
	for (size_t part = 0; part < 2; part++) {
		span.from_ns = part ? whole[31].time_ns : facts->start_ns;
		span.to_ns = part ? facts->end_ns : whole[31].time_ns;
		assert(recording_timeline(test.recording, &RECORDING_FILTER_ALL, &span, half, 32) ==
		       0);
		/* The last step of the first half may end within a chunk. */
		for (size_t i = 0; i < 31 + part; i++)
			assert(memcmp(half[i].bytes, whole[32 * part + i].bytes,
				      sizeof(half[i].bytes)) == 0);
		assert(half[31].time_ns == span.to_ns);
	}
}

UNIT(knows_gaps_and_what_comes_after_them)
{
	CLEANUP(test_deinit) struct test test;
	struct test_seen seen = {.filter = &RECORDING_FILTER_ALL};
	struct scan_book *book = NULL;
	char why[RECORDING_WHY_SIZE];
	struct view view = VIEW_NULL;
	struct recording_moment moment = {.device = 0};
	uint64_t before, digest;

	test_init(&test);
	for (uint32_t k = 0; k < 200; k++)
		test_op(&test);
	test_record(&test, true);
	before = test.recorded[0].streams[0].last;
	assert(view_read(&view, &test.books[0].reader, 0, VIEW_DEAD) == 0);
	digest = testing_digest(&view);
	for (uint32_t k = 0; k < 200; k++)
		test_op(&test);
	testing_recorded_gap(&test.recorded[0], 0);
	for (uint32_t k = 0; k < 200; k++)
		test_op(&test);
	test_record(&test, false);
	testing_recorder_end(&test.recorder);
	assert(recording_open(&test.recording, test.recorder.path, why) == 0);
	assert(recording_facts(test.recording)->missed > 0);
	assert(recording_walk(test.recording, &RECORDING_FILTER_ALL, NULL, NULL, test_see, &seen) ==
	       0);
	assert(seen.gaps == 1);
	/* In the gap it is as it was before. */
	moment.time_ns = recording_facts(test.recording)->end_ns;
	moment.number = before + 1;
	assert(recording_restore(test.recording, 0, &moment, &book) == 0);
	assert(view_read(&view, &book->reader, 0, VIEW_DEAD) == 0);
	assert(view.number == before && testing_digest(&view) == digest);
	scan_book_free(book);
	/* Behind it, it is exact again. */
	moment.number = UINT64_MAX;
	assert(recording_restore(test.recording, 0, &moment, &book) == 0);
	assert(view_read(&view, &book->reader, 0, VIEW_DEAD) == 0);
	digest = testing_digest(&view);
	assert(view_read(&view, &test.books[0].reader, 0, VIEW_DEAD) == 0);
	assert(digest == testing_digest(&view));
	scan_book_free(book);
	view_deinit(&view);
}

UNIT(adds_up_what_call_sites_did)
{
	CLEANUP(test_deinit) struct test test;
	struct recording_moment end = {.book = RECORDING_NONE, .device = RECORDING_NONE};
	struct recording_site *sites = NULL;
	uint64_t live[BOOK_TYPES] = {0}, allocs = 0, freed = 0;
	struct view view = VIEW_NULL;
	size_t count = 0;

	test_init(&test);
	test_work(&test);
	end.time_ns = recording_facts(test.recording)->end_ns;
	assert(recording_sites(test.recording, 1, 1, &end, &sites, &count) == 0);
	assert(count > 0 && count <= 15);
	for (size_t i = 0; i < count; i++) {
		uint64_t lives = 0;

		assert(sites[i].stack < 5 && sites[i].type < 3);
		assert(sites[i].alloc_bytes - sites[i].free_bytes == sites[i].live_bytes);
		assert(sites[i].high_bytes >= sites[i].live_bytes);
		for (uint32_t k = 0; k < RECORDING_LIVES; k++)
			lives += sites[i].lives[k];
		assert(lives == sites[i].frees);
		live[sites[i].type] += sites[i].live_bytes;
		allocs += sites[i].allocs;
		freed += sites[i].frees;
	}
	free(sites);
	assert(view_read(&view, &test.books[1].reader, 1, VIEW_DEAD) == 0);
	for (uint32_t type = 0; type < 3; type++)
		assert(live[type] == view.hot[type].bytes);
	assert(allocs - freed == view.live && allocs > 0);
	view_deinit(&view);
}

/* Sums of one device, by the simplest means. */
struct test_sums {
	uint64_t allocs, frees, alloc_bytes, free_bytes;
	uint64_t number; /* of the last event */
};

static int test_add(void *context, const struct recording_event *event)
{
	struct test_sums *sums = context;
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;
	uint64_t bytes = event_bytes(&event->event->record);

	sums->allocs += op == BOOK_OP_ALLOC;
	sums->alloc_bytes += op == BOOK_OP_ALLOC ? bytes : 0;
	sums->frees += op == BOOK_OP_FREE;
	sums->free_bytes += op == BOOK_OP_FREE ? bytes : 0;
	sums->number = event->number;
	return 0;
}

/* The real recorder writes sites now and then: what it says and what is counted since must fit. */
UNIT(goes_on_from_the_sites_that_were_recorded)
{
	struct testing_recording real;
	struct recording *recording = NULL;
	struct view view = VIEW_NULL;
	char path[256], why[RECORDING_WHY_SIZE];
	unsigned int wait;

	snprintf(path, sizeof(path), "%s/real.ttmem", getenv("TMPDIR"));
	testing_recording_start(&real, path, 16384, true);
	for (uint32_t i = 0; i < 100; i++) {
		testing_recording_act(&real, 1000);
		assert(recorder_round(real.recorder, &wait) == 0);
	}
	testing_recording_finish(&real, true);
	assert(recording_open(&recording, path, why) == 0);
	for (uint32_t i = 0; i < 20; i++) {
		const struct recording_facts *facts = recording_facts(recording);
		const struct recording_filter filter = {.device = i % 2};
		struct recording_moment moment = {
			.time_ns = facts->start_ns +
				   testing_random(&real.rng) % (facts->end_ns - facts->start_ns),
			.book = RECORDING_NONE,
			.device = RECORDING_NONE,
		};
		struct test_sums sums = {0}, told = {0};
		struct recording_site *sites;
		struct scan_book *book = NULL;
		size_t count;

		assert(recording_walk(recording, &filter, NULL, &moment, test_add, &sums) == 0);
		assert(recording_sites(recording, 0, i % 2, &moment, &sites, &count) == 0);
		for (size_t k = 0; k < count; k++) {
			told.allocs += sites[k].allocs;
			told.frees += sites[k].frees;
			told.alloc_bytes += sites[k].alloc_bytes;
			told.free_bytes += sites[k].free_bytes;
		}
		free(sites);
		/* The book at that moment has the same last event. */
		assert(recording_restore(recording, 0, &moment, &book) == 0);
		assert(view_read(&view, &book->reader, i % 2, VIEW_DEAD) == 0 && view.adds_up);
		scan_book_free(book);
		told.number = view.number;
		assert(memcmp(&sums, &told, sizeof(sums)) == 0);
	}
	view_deinit(&view);
	recording_free(recording);
	testing_recording_deinit(&real);
}
