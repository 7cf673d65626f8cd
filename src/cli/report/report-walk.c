/* SPDX-License-Identifier: Apache-2.0 */

/* Phases, gaps and the timeline, from the events of a recording. */

#include "cli/report/report-walk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "cli/report/report.h"

#define REPORT_WALK_NEAR 500u /* of the whole: what is closer together is shown as one */

static struct report_map_slot *report_map_find(const struct report_map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, at = hash_u64(key) & mask;

	while (map->slots[at].key && map->slots[at].key != key)
		at = (at + 1) & mask;
	return &map->slots[at];
}

/* The slot of a key, which may be new: then its key is 0. NULL: no memory. */
static struct report_map_slot *report_map_at(struct report_map *map, uint64_t key)
{
	struct report_map larger = {.count = map->count};

	if (2 * (map->count + 1) > map->capacity) {
		larger.capacity = map->capacity ? 2 * map->capacity : 64;
		larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
		if (!larger.slots)
			return NULL;
		for (size_t i = 0; i < map->capacity; i++) {
			if (map->slots[i].key)
				*report_map_find(&larger, map->slots[i].key) = map->slots[i];
		}
		free(map->slots);
		*map = larger;
	}
	return report_map_find(map, key);
}

static void report_map_set(struct report_map *map, struct report_map_slot *slot, uint64_t key,
			   size_t value)
{
	map->count += slot->key == 0;
	slot->key = key;
	slot->value = (uint32_t)value;
}

static uint64_t report_walk_key(uint64_t book, uint32_t word)
{
	return (book + 1) << 32 | word;
}

/* A thread has left a phase. */
static int report_walk_add(struct report_walk *walk, const struct report_span *span)
{
	uint64_t key = report_walk_key(span->book, span->phase);
	struct report_map_slot *slot = report_map_at(&walk->last, key);
	struct report_span *list;

	if (!slot)
		return -ENOMEM;
	if (slot->key) {
		list = &walk->spans[slot->value];
		if (span->from_ns <= list->to_ns + walk->near_ns) {
			list->from_ns = bits_min(list->from_ns, span->from_ns);
			list->to_ns = bits_max(list->to_ns, span->to_ns);
			return 0;
		}
	}
	if (walk->span_count == REPORT_PHASES_MAX) {
		walk->spans_lost++;
		return 0;
	}
	list = array_grow(walk->spans, &walk->span_capacity, walk->span_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	walk->spans = list;
	list[walk->span_count] = *span;
	report_map_set(&walk->last, slot, key, walk->span_count++);
	return 0;
}

static int report_walk_enter(struct report_walk *walk, const struct recording_event *event)
{
	const struct book_record *record = &event->event->record;
	uint64_t key = report_walk_key(event->book, book_thread(record->thread_space));
	struct report_map_slot *slot = report_map_at(&walk->now, key);
	struct report_span *open;
	int r = 0;

	if (!slot)
		return -ENOMEM;
	if (!slot->key) {
		open = array_grow(walk->open, &walk->open_capacity, walk->open_count + 1,
				  sizeof(*open));
		if (!open)
			return -ENOMEM;
		walk->open = open;
		open[walk->open_count] = (struct report_span){0};
		report_map_set(&walk->now, slot, key, walk->open_count++);
	}
	open = &walk->open[slot->value];
	if (open->phase && open->phase != record->phase) {
		open->to_ns = bits_max(open->from_ns, event->time_ns);
		r = report_walk_add(walk, open);
	}
	if (open->phase != record->phase)
		*open = (struct report_span){.book = (uint32_t)event->book,
					     .phase = record->phase,
					     .from_ns = event->time_ns};
	open->to_ns = bits_max(open->to_ns, event->time_ns);
	return r;
}

static int report_walk_gap(struct report_walk *walk, const struct recording_event *event,
			   uint64_t since_ns)
{
	const struct recording_gap *from = event->gap;
	struct report_gap *list;

	if (walk->gap_count == REPORT_GAPS_MAX) {
		walk->gaps_lost++;
		return 0;
	}
	list = array_grow(walk->gaps, &walk->gap_capacity, walk->gap_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	walk->gaps = list;
	list += walk->gap_count++;
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
	return 0;
}

static int report_walk_event(void *context, const struct recording_event *event)
{
	struct report_walk *walk = context;
	struct report_device *device = report_timeline_device(&walk->timeline, event);
	uint64_t since_ns;

	if (!device)
		return -ENOMEM;
	since_ns = device->seen_ns;
	report_timeline_add(&walk->timeline, device, event);
	if (!event->event)
		return event->gap ? report_walk_gap(walk, event, since_ns) : 0;
	/* Only these carry the phase of the call; a free has the one that its buffer was born in. */
	switch (event->event->op_slot & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
	case BOOK_OP_FAILED:
		return report_walk_enter(walk, event);
	default:
		return 0;
	}
}

int report_walk(struct report_walk *walk, struct recording *recording, const struct snapshot *end)
{
	const struct recording_facts *facts = recording_facts(recording);
	const struct recording_filter all = RECORDING_FILTER_ALL;
	int r;

	if (facts->events > REPORT_EVENTS_MAX)
		return 0;
	walk->near_ns = (facts->end_ns - facts->start_ns) / REPORT_WALK_NEAR;
	r = report_timeline_init(&walk->timeline, recording);
	if (r == 0)
		r = recording_walk(recording, &all, NULL, NULL, report_walk_event, walk);
	for (size_t i = 0; r == 0 && i < walk->open_count; i++) {
		if (walk->open[i].phase)
			r = report_walk_add(walk, &walk->open[i]);
	}
	if (r < 0)
		return r;
	report_timeline_finish(&walk->timeline, end);
	walk->is_done = true;
	return 0;
}

void report_walk_deinit(struct report_walk *walk)
{
	report_timeline_deinit(&walk->timeline);
	free(walk->open);
	free(walk->now.slots);
	free(walk->last.slots);
	free(walk->gaps);
	free(walk->spans);
	*walk = REPORT_WALK_NULL;
}
