/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes in use over time, from events. */

#include "cli/report/report-timeline.h"

#include <stdlib.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "cli/report/report.h"
#include "model/snapshot.h"

static int report_compare_ends(const void *left, const void *right)
{
	const struct report_end *a = left, *b = right;

	return bits_compare(a->time_ns, b->time_ns);
}

void report_timeline_init(struct report_timeline *timeline, struct recording *recording)
{
	const struct recording_facts *facts = recording_facts(recording);

	*timeline = (struct report_timeline){
		.recording = recording,
		.start_ns = facts->start_ns,
		.length_ns = bits_max(facts->end_ns - facts->start_ns, 1),
		.samples = must_alloc(REPORT_SAMPLES, sizeof(*timeline->samples)),
		.books = must_alloc(facts->books + 1, sizeof(struct report_device *)),
		.ends = must_alloc(facts->books + 1, sizeof(*timeline->ends)),
		.book_count = facts->books,
	};

	for (size_t i = 0; i < facts->books; i++) {
		const struct recording_owner *owner = recording_owner(recording, i);

		if (owner && owner->has_ended)
			timeline->ends[timeline->end_count++] = (struct report_end){
				.time_ns = owner->ending.ended_ns, .book = (uint32_t)i};
	}
	qsort(timeline->ends, timeline->end_count, sizeof(*timeline->ends), report_compare_ends);
	for (size_t i = 0; i < REPORT_SAMPLES; i++)
		timeline->samples[i].time_ns =
			timeline->start_ns + (uint64_t)((unsigned __int128)timeline->length_ns *
							(i + 1) / REPORT_SAMPLES);
}

void report_timeline_deinit(struct report_timeline *timeline)
{
	for (size_t i = 0; timeline->books && i < timeline->book_count; i++)
		free(timeline->books[i]);
	free(timeline->books);
	free(timeline->samples);
	free(timeline->ends);
	*timeline = (struct report_timeline){0};
}

struct report_device *report_timeline_device(struct report_timeline *timeline,
					     const struct recording_event *event)
{
	struct report_device **book;

	if (event->book >= timeline->book_count || event->device >= BOOK_DEVICES)
		return NULL;
	book = &timeline->books[event->book];
	if (!*book)
		*book = must_alloc(BOOK_DEVICES, sizeof(**book));
	return &(*book)[event->device];
}

/* What is in use now may be the most of its step. */
static void report_timeline_note(struct report_timeline *timeline, bool is_first)
{
	struct recording_sample *sample = &timeline->samples[timeline->step];
	uint64_t sum = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		sum += timeline->now[type];
		sample->high[type] = bits_max(sample->high[type], timeline->now[type]);
	}
	if (!is_first && sum <= timeline->most)
		return;
	timeline->most = sum;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		sample->bytes[type] = timeline->now[type];
}

static size_t report_timeline_step(const struct report_timeline *timeline, uint64_t time_ns)
{
	uint64_t since = time_ns > timeline->start_ns ? time_ns - timeline->start_ns : 0;

	return (size_t)bits_min(
		(uint64_t)((unsigned __int128)since * REPORT_SAMPLES / timeline->length_ns),
		REPORT_SAMPLES - 1);
}

static void report_timeline_go(struct report_timeline *timeline, size_t step)
{
	while (timeline->step < step) {
		timeline->step++;
		report_timeline_note(timeline, true);
	}
}

/* The processes that have ended by then. */
static void report_timeline_end(struct report_timeline *timeline, uint64_t time_ns)
{
	for (; timeline->ended < timeline->end_count; timeline->ended++) {
		const struct report_end *end = &timeline->ends[timeline->ended];
		struct report_device *devices = timeline->books[end->book];

		if (end->time_ns >= time_ns)
			return;
		report_timeline_go(timeline, report_timeline_step(timeline, end->time_ns));
		for (uint32_t i = 0; devices && i < BOOK_DEVICES; i++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				timeline->now[type] -= devices[i].bytes[type];
				devices[i].bytes[type] = 0;
			}
		}
	}
}

/*
 * The first event of a device that the recording has: if there were others before it, nothing is known from the
 * start of the process until then.
 */
static void report_timeline_reach(struct report_timeline *timeline,
				  const struct recording_event *event)
{
	const struct recording_owner *owner = recording_owner(timeline->recording, event->book);
	size_t first = report_timeline_step(timeline, owner ? owner->book.start_ns : 0);
	size_t last = report_timeline_step(timeline, event->time_ns);
	uint8_t types = 0;

	if (event->number <= 1)
		return;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (event->hot[type].allocs || event->hot[type].frees)
			types |= (uint8_t)(1u << type);
	}
	for (size_t i = first; i < last; i++)
		timeline->samples[i].unknown |= types;
}

void report_timeline_add(struct report_timeline *timeline, struct report_device *device,
			 const struct recording_event *event)
{
	const struct recording_owner *owner = recording_owner(timeline->recording, event->book);

	report_timeline_end(timeline, event->time_ns);
	if (!device->seen_ns)
		report_timeline_reach(timeline, event);
	device->seen_ns = event->time_ns;
	/* By its own clock an event may be a little later than the end of its process. */
	if (owner && owner->has_ended && owner->ending.ended_ns < event->time_ns)
		return;
	report_timeline_go(timeline, report_timeline_step(timeline, event->time_ns));
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		timeline->now[type] += event->hot[type].bytes - device->bytes[type];
		device->bytes[type] = event->hot[type].bytes;
	}
	report_timeline_note(timeline, false);
	if (timeline->most <= timeline->peak_bytes)
		return;
	timeline->peak_bytes = timeline->most;
	timeline->peak = (struct recording_moment){
		.time_ns = event->time_ns,
		.book = (uint32_t)event->book,
		.device = event->device,
		.number = event->number,
	};
}

static bool report_timeline_is_idle(const struct report_timeline *timeline, size_t book,
				    uint32_t device)
{
	const struct report_device *devices = timeline->books[book];

	return device < BOOK_DEVICES && (!devices || !devices[device].seen_ns);
}

/* Adds what a process had all the time. */
static void report_timeline_add_idle(struct report_timeline *timeline, size_t book,
				     const struct snapshot_process *process)
{
	const struct recording_owner *owner = recording_owner(timeline->recording, book);
	size_t first = report_timeline_step(timeline, owner->book.start_ns);
	size_t last = owner->has_ended ? report_timeline_step(timeline, owner->ending.ended_ns)
				       : REPORT_SAMPLES - 1;

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (!report_timeline_is_idle(timeline, book, part->device))
			continue;
		for (size_t k = first; k <= last; k++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				timeline->samples[k].bytes[type] += part->memory[type].used;
				timeline->samples[k].high[type] += part->memory[type].used;
			}
		}
	}
}

void report_timeline_finish(struct report_timeline *timeline, const struct snapshot *end)
{
	report_timeline_end(timeline, UINT64_MAX);
	report_timeline_go(timeline, REPORT_SAMPLES - 1);
	for (size_t i = 0; i < end->process_count; i++) {
		const struct snapshot_process *process = &end->processes[i];

		for (size_t book = 0; book < timeline->book_count; book++) {
			const struct recording_owner *owner =
				recording_owner(timeline->recording, book);

			if (owner && process_id_equal(recording_process(&owner->book), process->id))
				report_timeline_add_idle(timeline, book, process);
		}
	}
}
