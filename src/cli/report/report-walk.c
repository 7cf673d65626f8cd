/* SPDX-License-Identifier: Apache-2.0 */

/* Phases, gaps and the timeline, from the events of a recording. */

#include "cli/report/report-walk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "cli/report/report.h"

#define REPORT_WALK_NEAR 500u /* of the whole: what is closer together is shown as one */

/* A thread has left a phase. */
static void report_walk_add(struct report_walk *walk, const struct report_span *span)
{
	uint32_t number = map_find(&walk->phases, span->book, span->phase);
	struct report_span *last = number ? &walk->spans[walk->last[number - 1]] : NULL;

	if (last && span->from_ns <= last->to_ns + walk->near_ns) {
		last->from_ns = bits_min(last->from_ns, span->from_ns);
		last->to_ns = bits_max(last->to_ns, span->to_ns);
		return;
	}
	if (walk->span_count == REPORT_PHASES_MAX) {
		walk->spans_lost++;
		return;
	}
	number = must_number(&walk->phases, span->book, span->phase);
	must_grow(walk->spans, &walk->span_capacity, walk->span_count + 1);
	must_grow(walk->last, &walk->last_capacity, number);
	walk->last[number - 1] = (uint32_t)walk->span_count;
	walk->spans[walk->span_count++] = *span;
}

static void report_walk_enter(struct report_walk *walk, const struct recording_event *event)
{
	const struct book_record *record = &event->event->record;
	uint32_t before = walk->threads.count;
	uint32_t number =
		must_number(&walk->threads, event->book, book_thread(record->thread_space));
	struct report_span *open;

	must_grow(walk->open, &walk->open_capacity, number);
	open = &walk->open[number - 1];
	if (number > before)
		*open = (struct report_span){0};
	if (open->phase && open->phase != record->phase) {
		open->to_ns = bits_max(open->from_ns, event->time_ns);
		report_walk_add(walk, open);
	}
	if (open->phase != record->phase)
		*open = (struct report_span){.book = (uint32_t)event->book,
					     .phase = record->phase,
					     .from_ns = event->time_ns};
	open->to_ns = bits_max(open->to_ns, event->time_ns);
}

static void report_walk_gap(struct report_walk *walk, const struct recording_event *event,
			    uint64_t since_ns)
{
	const struct recording_gap *from = event->gap;
	struct report_gap *list;

	if (walk->gap_count == REPORT_GAPS_MAX) {
		walk->gaps_lost++;
		return;
	}
	must_grow(walk->gaps, &walk->gap_capacity, walk->gap_count + 1);
	list = &walk->gaps[walk->gap_count++];
	*list = (struct report_gap){
		.book = (uint32_t)event->book,
		.device = event->device,
		.from_ns = since_ns ? since_ns : event->time_ns,
		.to_ns = event->time_ns,
		.events = from->events,
	};
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		list->allocs += from->allocs[type];
		list->frees += from->frees[type];
		list->has_peak |= from->peak[type] != 0;
	}
}

static int report_walk_event(void *context, const struct recording_event *event)
{
	struct report_walk *walk = context;
	struct report_device *device = report_timeline_device(&walk->timeline, event);
	uint64_t since_ns;
	uint32_t op;

	if (!device)
		return -EBADMSG;
	since_ns = device->seen_ns;
	report_timeline_add(&walk->timeline, device, event);
	if (!event->event) {
		if (event->gap)
			report_walk_gap(walk, event, since_ns);
		return 0;
	}
	/* Only these carry the phase of the call; a free has the one that its buffer was born in. */
	op = event->event->op_slot & BOOK_OP_MASK;
	if (op == BOOK_OP_ALLOC || op == BOOK_OP_FAILED)
		report_walk_enter(walk, event);
	return 0;
}

int report_walk(struct report_walk *walk, struct recording *recording, const struct snapshot *end)
{
	const struct recording_facts *facts = recording_facts(recording);
	const struct recording_filter all = RECORDING_FILTER_ALL;
	int r;

	if (facts->events > REPORT_EVENTS_MAX)
		return 0;
	walk->near_ns = (facts->end_ns - facts->start_ns) / REPORT_WALK_NEAR;
	report_timeline_init(&walk->timeline, recording);
	r = recording_walk(recording, &all, NULL, NULL, report_walk_event, walk);
	if (r < 0)
		return r;
	for (size_t i = 0; i < walk->threads.count; i++) {
		if (walk->open[i].phase)
			report_walk_add(walk, &walk->open[i]);
	}
	report_timeline_finish(&walk->timeline, end);
	walk->is_done = true;
	return 0;
}

void report_walk_deinit(struct report_walk *walk)
{
	report_timeline_deinit(&walk->timeline);
	free(walk->open);
	map_deinit(&walk->threads);
	free(walk->last);
	map_deinit(&walk->phases);
	free(walk->gaps);
	free(walk->spans);
	*walk = REPORT_WALK_NULL;
}
