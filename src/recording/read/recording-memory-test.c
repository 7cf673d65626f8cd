/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a recording while one allocation fails: what is read is complete, or the failure is told. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "model/mark.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recording.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"
#include "source/source.h"

#define EVENTS 1000u
#define SAMPLES 8u

static const char *path(void)
{
	return unit_path("recording");
}

static struct recording *recording;
static struct recording_moment end = {.book = RECORDING_NONE, .device = RECORDING_NONE};
static uint64_t expected; /* what a try finds out */

static int open_it(void *context)
{
	char why[RECORDING_WHY_SIZE] = "";
	struct recording *opened = NULL;
	int r = recording_open(&opened, path(), why);

	(void)context;
	if (r == 0) {
		assert(recording_facts(opened)->books == 1 && recording_facts(opened)->is_complete);
		assert(recording_facts(opened)->events >= EVENTS && !recording_facts(opened)->torn);
	} else {
		assert(strstr(why, path()) && !opened);
	}
	recording_free(opened);
	return r;
}

UNIT(a_recording_is_opened_or_not)
{
	testing_recording_make(path(), EVENTS);
	assert(unit_memory_sweep(open_it, NULL) > 5);
}

/* Does @try once with memory, to know what it finds, then without each of its allocations. */
static void sweep(unit_memory_fn *try)
{
	char why[RECORDING_WHY_SIZE];

	testing_recording_make(path(), EVENTS);
	assert(recording_open(&recording, path(), why) == 0);
	end.time_ns = recording_facts(recording)->end_ns;
	expected = 0;
	assert(try(NULL) == 0 && expected != 0);
	assert(unit_memory_sweep(try, NULL) > 0);
	recording = recording_free(recording);
}

/* Return: @r. */
static int found(int r, uint64_t what)
{
	if (r == 0 && expected == 0)
		expected = what;
	assert(r != 0 || what == expected);
	return r;
}

static int restore(void *context)
{
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	struct scan_book *book = NULL;
	int r = recording_restore(recording, 0, &end, &book);
	uint64_t sum = 0;

	(void)context;
	for (uint32_t device = 0; r == 0 && device < 2; device++) {
		r = view_read(&view, &book->reader, device, VIEW_DEAD);
		sum ^= r == 0 ? testing_digest(&view) : 0;
	}
	scan_book_free(book);
	return found(r, sum);
}

UNIT(a_restored_book_is_whole)
{
	sweep(restore);
}

static int outline(void *context)
{
	struct scan_book *book = NULL;
	int r = recording_outline(recording, 0, &book);
	struct book_arena arena;

	(void)context;
	if (r == 0)
		assert(reader_arena(&book->reader, BOOK_ARENA_STACKS, &arena) == 0);
	scan_book_free(book);
	return found(r, r == 0 ? arena.used : 0);
}

UNIT(an_outline_is_whole)
{
	sweep(outline);
}

static struct snapshot_request request;

/* Notes and texts may be missing: those who show them bear that. */
static uint64_t sum_of(const struct snapshot *snapshot)
{
	uint64_t sum = snapshot->process_count;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				sum += process->parts[k].memory[type].used +
				       process->parts[k].memory[type].allocs;
		}
	}
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		sum += hash_u64(snapshot->buffers[i].address ^ snapshot->buffers[i].size);
	return sum + snapshot->incident_count;
}

static int collect(void *context)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct source *source = NULL;
	int r = snapshot ? recording_source_new(&source, recording, &end) : -ENOMEM;
	uint64_t sum = 0;

	(void)context;
	if (r == 0)
		r = source_collect(source, &request, snapshot);
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r == 0)
		sum = sum_of(snapshot);
	source_free(source);
	snapshot_free(snapshot);
	return found(r, sum);
}

UNIT(totals_are_whole)
{
	sweep(collect);
}

UNIT(buffers_and_incidents_are_whole)
{
	request = (struct snapshot_request){
		.buffers = true, .incidents = true, .ended = true, .explained = 2};
	sweep(collect);
}

UNIT(buffers_of_the_peak_are_whole)
{
	request = (struct snapshot_request){.buffers = true, .ended = true, .at_peak = true};
	sweep(collect);
}

static int timeline(void *context)
{
	const struct recording_filter filter = {.pid = 1234, .device = 0};
	struct recording_sample samples[SAMPLES];
	int r = recording_timeline(recording, &filter, NULL, samples, SAMPLES);
	const struct recording_span span = {recording_facts(recording)->start_ns,
					    recording_facts(recording)->end_ns};

	(void)context;
	if (r == 0)
		r = recording_timeline_refine(recording, &filter, &span, samples, SAMPLES);
	return found(r, r == 0 ? hash_bytes(samples, sizeof(samples)) : 0);
}

UNIT(a_timeline_is_whole)
{
	sweep(timeline);
}

static bool has(void *context, size_t set, const struct book_record *record)
{
	(void)context;
	return set == 0 || record->stack == 1;
}

static int most(void *context)
{
	const struct recording_sets sets = {.count = 2, .has = has};
	struct recording_most found_most[2 * BOOK_TYPES];
	uint64_t sum = 0;
	bool is_exact;
	int r = recording_most(recording, 0, 0, &sets, found_most, &is_exact);

	(void)context;
	for (size_t i = 0; r == 0 && i < 2 * (size_t)BOOK_TYPES; i++)
		sum = hash_fold(sum ^ HASH_K0,
				found_most[i].bytes ^ found_most[i].moment.number ^ HASH_K1);
	return found(r, sum);
}

UNIT(the_most_is_found)
{
	sweep(most);
}

static int sites(void *context)
{
	struct recording_site *list = NULL;
	size_t count = 0;
	uint64_t sum = 0;
	int r = recording_sites(recording, 0, 0, &end, &list, &count);

	(void)context;
	for (size_t i = 0; r == 0 && i < count; i++)
		sum += list[i].allocs + list[i].frees + list[i].live_bytes;
	free(list);
	return found(r, sum);
}

UNIT(call_sites_are_complete)
{
	sweep(sites);
}

static int peak(void *context)
{
	struct recording_moment moment;
	uint64_t bytes = 0;
	int r = recording_peak(recording, &RECORDING_FILTER_ALL, &moment, &bytes);

	(void)context;
	return found(r, r == 0 ? hash_fold(bytes, moment.time_ns) : 0);
}

UNIT(the_peak_is_found)
{
	sweep(peak);
}

static int find(void *context)
{
	static const char *const texts[] = {"start", "peak", "failed", "end"};
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE];
	uint64_t sum = 0;
	int r = 0;

	(void)context;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++) {
		r = recording_find(recording, texts[i], &RECORDING_FILTER_ALL, &moment, why);
		sum += r == 0 ? moment.time_ns : 0;
	}
	return found(r, sum);
}

UNIT(moments_are_found)
{
	sweep(find);
}

static int add(void *context, const struct recording_event *event)
{
	*(uint64_t *)context += event->time_ns ^ event->number;
	return 0;
}

static int walk(void *context)
{
	uint64_t sum = 0;
	int r = recording_walk(recording, &RECORDING_FILTER_ALL, NULL, NULL, add, &sum);

	(void)context;
	return found(r, r == 0 ? sum : 0);
}

UNIT(every_event_is_walked_to)
{
	sweep(walk);
}
