/* SPDX-License-Identifier: Apache-2.0 */

/* Applies a device's chunks one after the other. */

#include "recording/testing/testing-replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/format/event.h"

static void replay_events(struct testing_replay *replay, const struct testing_chunk *chunk)
{
	const struct recording_entry *entry = &chunk->head.entry;
	struct book_event *events = calloc(entry->count, sizeof(*events));
	uint64_t high[BOOK_TYPES] = {0}, high_number[BOOK_TYPES] = {0};

	assert(events && replay->has_table);
	assert(entry->first == replay->number + 1);
	assert(entry->last == replay->number + entry->count && entry->count > 0);
	assert(columns_decode(&replay->table, chunk->contents, entry->size, entry->count, events) ==
	       0);
	for (uint32_t i = 0; i < entry->count; i++) {
		uint32_t type = book_meta_type(events[i].record.meta);

		assert(events[i].time >= entry->stamp_first && events[i].time <= entry->stamp_last);
		event_count_hot(events[i].op_slot & 0xff, events[i].time, &events[i].record,
				&replay->hot[type]);
		replay->hot[type].number = ++replay->number;
		for (uint32_t t = 0; t < BOOK_TYPES; t++) {
			if (i == 0 || replay->hot[t].bytes > high[t]) {
				high[t] = replay->hot[t].bytes;
				high_number[t] = replay->number;
			}
		}
	}
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		assert(entry->bytes[t] == replay->hot[t].bytes);
		assert(entry->high[t] == high[t] && entry->high_number[t] == high_number[t]);
	}
	replay->events += entry->count;
	free(events);
}

static void replay_keyframe(struct testing_replay *replay, const struct testing_chunk *chunk)
{
	const struct recording_entry *entry = &chunk->head.entry;
	struct columns_table table = {0};
	struct book_shard page;

	assert(entry->size > sizeof(page) && entry->first == entry->last);
	memcpy(&page, chunk->contents, sizeof(page));
	assert(page.head == entry->last && page.checkpoint[0].number == entry->last);
	assert(columns_decode_table(&table, chunk->contents + sizeof(page),
				    entry->size - sizeof(page)) == 0);
	assert(page.slots == table.count);
	if (replay->keyframes++ == 0 && replay->gaps == 0) {
		replay->first = replay->number = entry->last;
	} else {
		assert(entry->last == replay->number);
	}
	if (replay->has_table) {
		assert(table.count == replay->table.count);
		assert(table.count == 0 || memcmp(table.records, replay->table.records,
						  table.count * sizeof(*table.records)) == 0);
	}
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		if (replay->has_table)
			assert(memcmp(&page.hot[t][0], &replay->hot[t], sizeof(replay->hot[t])) ==
			       0);
		assert(memcmp(&page.hot[t][0], &page.checkpoint[0].hot[t],
			      sizeof(page.hot[t][0])) == 0);
		replay->hot[t] = page.hot[t][0];
	}
	columns_table_deinit(&replay->table);
	replay->table = table;
	replay->has_table = true;
}

static void replay_gap(struct testing_replay *replay, const struct testing_chunk *chunk)
{
	const struct recording_entry *entry = &chunk->head.entry;
	struct recording_gap gap;

	assert(entry->size == sizeof(gap) && entry->first == replay->number + 1);
	memcpy(&gap, chunk->contents, sizeof(gap));
	assert(gap.events == entry->last - entry->first + 1);
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		replay->hot[t].allocs += gap.allocs[t];
		replay->hot[t].frees += gap.frees[t];
		replay->hot[t].bytes += (uint64_t)gap.bytes[t];
		assert(entry->bytes[t] == replay->hot[t].bytes);
		if (gap.peak[t]) {
			assert(gap.peak[t] > replay->hot[t].peak);
			replay->hot[t].peak = gap.peak[t];
			replay->hot[t].peak_time = gap.peak_stamp[t];
		}
	}
	replay->number = entry->last;
	replay->missed += gap.events;
	replay->gaps++;
	replay->has_table = false;
}

void testing_replay(struct testing_replay *ret_replay, const struct testing_chunks *chunks,
		    uint32_t book, uint32_t device)
{
	*ret_replay = (struct testing_replay){0};
	for (size_t i = 0; i < chunks->count; i++) {
		const struct recording_entry *entry = &chunks->chunks[i].head.entry;

		if (entry->book != book || entry->device != device)
			continue;
		if (entry->kind == RECORDING_EVENTS)
			replay_events(ret_replay, &chunks->chunks[i]);
		else if (entry->kind == RECORDING_KEYFRAME)
			replay_keyframe(ret_replay, &chunks->chunks[i]);
		else if (entry->kind == RECORDING_GAP)
			replay_gap(ret_replay, &chunks->chunks[i]);
	}
}

void testing_replay_deinit(struct testing_replay *replay)
{
	columns_table_deinit(&replay->table);
}
