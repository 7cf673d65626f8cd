/* SPDX-License-Identifier: Apache-2.0 */

/*
 * recording-large FILE EVENTS: a recording of so many events on two devices with 100,000 live
 * buffers each, made without a process. recording-large FILE: how long it takes to open it, to draw
 * its timeline, and to find states and the peak. Not installed; docs/performance.md has its figures.
 */

#undef NDEBUG
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/clock.h"
#include "book/format/event.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"
#include "source/books/scan.h"

#define LARGE_DEVICES 2u
#define LARGE_LIVE 100000u
#define LARGE_STEP 1000u /* stamps between two events */
#define LARGE_SAMPLES 1000u

struct large {
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct testing_rng rng;
	struct book_event *events;
	uint64_t stamp;
	uint32_t slots[LARGE_DEVICES]; /* in use so far */
	uint64_t keyframe_at[LARGE_DEVICES], since[LARGE_DEVICES];
};

/* An allocation as long as there are not enough, else the free of any, whose slot is used next. */
static void large_event(struct large *large, uint32_t device, struct book_event *event,
			uint32_t *hole)
{
	const struct columns_table *table = &large->recorded.streams[device].table;
	uint32_t slot = *hole;

	large->stamp += LARGE_STEP;
	if (slot == UINT32_MAX && large->slots[device] >= LARGE_LIVE) {
		slot = testing_below(&large->rng, LARGE_LIVE);
		*event = (struct book_event){.time = large->stamp,
					     .op_slot = slot << 8 | BOOK_OP_FREE,
					     .record = table->records[slot]};
		*hole = slot;
		return;
	}
	*hole = UINT32_MAX;
	if (slot == UINT32_MAX)
		slot = large->slots[device]++;
	*event = (struct book_event){
		.time = large->stamp,
		.op_slot = slot << 8 | BOOK_OP_ALLOC,
		.stack = 1 + slot % 50,
		.record = {.address = (uint64_t)slot * 65536,
			   .size = 4096 * (1 + (uint64_t)testing_below(&large->rng, 8)),
			   .birth = large->stamp,
			   .stack = 1 + slot % 50,
			   .thread_space = 1,
			   .meta = book_meta(0, 0, 1)},
	};
}

/* A chunk: pairs of events, so that the table is as the codec has it when a free is made. */
static void large_chunk(struct large *large, uint32_t device, uint32_t count)
{
	struct columns_table *table = &large->recorded.streams[device].table;
	struct book_record *before = malloc(LARGE_LIVE * sizeof(*before));
	uint32_t hole = UINT32_MAX, held = (uint32_t)bits_min(table->count, LARGE_LIVE);

	assert(before);
	memcpy(before, table->records, held * sizeof(*before));
	for (uint32_t i = 0; i < count; i++) {
		large_event(large, device, &large->events[i], &hole);
		assert(columns_apply(table, &large->events[i]) == 0);
	}
	/* The codec has to start from where the chunk does. */
	memset(table->records, 0, table->count * sizeof(*before));
	if (held)
		memcpy(table->records, before, held * sizeof(*before));
	table->count = held;
	testing_recorded_put(&large->recorded, device, large->events, count);
	free(before);
}

static void large_make(const char *path, uint64_t events)
{
	struct large large = {.rng = {.state = 1}};

	large.events = malloc(RECORDING_EVENTS_MAX * sizeof(*large.events));
	assert(large.events);
	testing_book_init(&large.book, TESTING_SIZE, 16384);
	testing_book_write(&large.book);
	testing_book_read(&large.book);
	testing_recorder_open(&large.recorder, path);
	/* The book has a place for every buffer; what the recording says of them is made up. */
	for (uint32_t i = 0; i < LARGE_DEVICES * LARGE_LIVE; i++) {
		struct testing_op op = {.device = i % LARGE_DEVICES,
					.buffer = testing_buffer(0, i + 1, 1)};

		testing_op_do(large.book.writer, &op);
	}
	testing_recorded_init(&large.recorded, &large.recorder, &large.book, 1);
	testing_recorded_bytes(&large.recorded);
	large.stamp = large.book.reader.header.clock_start;
	for (uint64_t done = 0; done < events; done += RECORDING_EVENTS_MAX) {
		uint32_t device = (uint32_t)(done / RECORDING_EVENTS_MAX % LARGE_DEVICES);

		large_chunk(&large, device, RECORDING_EVENTS_MAX);
		large.since[device] += testing_recorder_last(&large.recorder);
		if (large.since[device] >= large.keyframe_at[device]) {
			testing_recorded_state(&large.recorded, device);
			large.keyframe_at[device] = testing_recorder_last(&large.recorder);
			large.since[device] = 0;
		}
	}
	testing_recorder_end(&large.recorder);
	testing_recorded_deinit(&large.recorded);
	testing_recorder_deinit(&large.recorder);
	testing_book_deinit(&large.book);
	free(large.events);
}

static double large_ms(uint64_t *from)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	double ms = (double)(now - *from) / 1e6;

	*from = now;
	return ms;
}

static void large_print(const char *what, uint64_t *from)
{
	struct rusage usage;

	assert(getrusage(RUSAGE_SELF, &usage) == 0);
	printf("%-28s %8.1f ms, at most %ld MiB so far\n", what, large_ms(from),
	       usage.ru_maxrss / 1024);
	*from = clock_ns(CLOCK_MONOTONIC);
}

static void large_measure(const char *path)
{
	struct recording_sample *samples = calloc(LARGE_SAMPLES, sizeof(*samples));
	struct testing_rng rng = {.state = 2};
	uint64_t from = clock_ns(CLOCK_MONOTONIC), bytes;
	struct recording *recording = NULL;
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE], what[32];

	assert(samples && recording_open(&recording, path, why) == 0);
	large_print("open", &from);
	assert(recording_timeline(recording, &RECORDING_FILTER_ALL, NULL, samples, LARGE_SAMPLES) ==
	       0);
	large_print("timeline", &from);
	printf("%" PRIu64 " events\n", recording_facts(recording)->events);
	for (uint32_t i = 1; i <= 5; i++) {
		const struct recording_facts *facts = recording_facts(recording);
		struct scan_book *book = NULL;

		moment = (struct recording_moment){
			.time_ns = facts->start_ns +
				   testing_random(&rng) % (facts->end_ns - facts->start_ns),
			.book = RECORDING_NONE,
			.device = RECORDING_NONE,
		};
		assert(recording_restore(recording, 0, &moment, &book) == 0);
		snprintf(what, sizeof(what), "state %" PRIu32, i);
		large_print(what, &from);
		scan_book_free(book);
	}
	assert(recording_peak(recording, &RECORDING_FILTER_ALL, &moment, &bytes) == 0);
	large_print("peak", &from);
	recording_free(recording);
	free(samples);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: recording-large FILE [EVENTS]\n");
		return 2;
	}
	if (argc == 3)
		large_make(argv[1], strtoull(argv[2], NULL, 10));
	else
		large_measure(argv[1]);
	return 0;
}
