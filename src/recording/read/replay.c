/* SPDX-License-Identifier: Apache-2.0 */

/* Going through a stream: which keyframe to begin with, and chunk after chunk from there. */

#include "recording/read/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "book/format/event.h"
#include "book/read/idle-counters.h"

static bool replay_has(const struct recording_entry *entry, const struct replay_cut *cut)
{
	if (entry->kind == RECORDING_EVENTS)
		return cut->has_number ? entry->first <= cut->number
				       : entry->stamp_first <= cut->stamp;
	if (entry->kind == RECORDING_KEYFRAME)
		return cut->has_number ? entry->last <= cut->number
				       : entry->stamp_first <= cut->stamp;
	return false;
}

int replay_find(const struct recording *recording, const struct recording_stream *stream,
		const struct replay_cut *cut, size_t *ret_at)
{
	for (size_t i = stream->count; i > 0; i--) {
		if (replay_has(stream_entry(recording, stream, i - 1), cut)) {
			*ret_at = i - 1;
			return 0;
		}
	}
	return -ENOENT;
}

int replay_begin(const struct recording *recording, const struct recording_stream *stream,
		 size_t at, uint64_t events, size_t *ret_begin)
{
	const struct recording_entry *entry = stream_entry(recording, stream, at);
	uint64_t end = entry->last, low = entry->last + 1; /* all from low on have been seen */
	size_t begin = SIZE_MAX;

	for (size_t i = at + 1; i > 0; i--) {
		entry = stream_entry(recording, stream, i - 1);
		if (entry->kind == RECORDING_GAP)
			break;
		if (entry->kind != RECORDING_EVENTS && entry->kind != RECORDING_KEYFRAME)
			continue;
		if (entry->last + 1 != low)
			break;
		if (entry->kind == RECORDING_EVENTS) {
			low = entry->first;
			if (low == 1)
				begin = i - 1; /* the device's first event: its table is empty */
		} else {
			begin = i - 1;
			if (end - entry->last >= events)
				break;
		}
	}
	*ret_begin = begin;
	return begin == SIZE_MAX ? -EBADMSG : 0;
}

static int replay_take_keyframe(struct replay *replay, const struct recording_entry *entry)
{
	const struct chunk_bytes *contents = &replay->recording->contents;
	int r = recording_read(replay->recording, entry);

	if (r == 0 && contents->size < sizeof(replay->page))
		r = -EBADMSG;
	if (r < 0)
		return r;
	memcpy(&replay->page, contents->bytes, sizeof(replay->page));
	replay->has_page = true;
	r = columns_decode_table(&replay->table, contents->bytes + sizeof(replay->page),
				 contents->size - sizeof(replay->page));
	replay->number = entry->last;
	return r;
}

int replay_init(struct replay *replay, struct recording *recording,
		const struct recording_stream *stream, size_t begin)
{
	const struct recording_entry *entry = stream_entry(recording, stream, begin);

	*replay = (struct replay){
		.recording = recording,
		.stream = stream,
		.next = begin,
		.events = malloc(RECORDING_EVENTS_MAX * sizeof(struct book_event)),
	};
	if (!replay->events)
		return -ENOMEM;
	if (entry->kind != RECORDING_KEYFRAME)
		return 0;
	replay->next++;
	return replay_take_keyframe(replay, entry);
}

void replay_deinit(struct replay *replay)
{
	columns_table_deinit(&replay->table);
	free(replay->events);
	*replay = (struct replay){0};
}

static int replay_take_events(struct replay *replay, const struct recording_entry *entry,
			      struct columns_table *table)
{
	const struct chunk_bytes *contents = &replay->recording->contents;
	int r = recording_read(replay->recording, entry);

	if (r == 0)
		r = columns_decode(table, contents->bytes, contents->size, entry->count,
				   replay->events);
	if (r < 0)
		return r;
	replay->first = entry->first;
	replay->count = entry->count;
	return REPLAY_EVENTS;
}

/* What the keyframe behind a gap says. A file that ends in between has none, and no events. */
static int replay_pass_gap(struct replay *replay)
{
	while (replay->next < replay->stream->count) {
		const struct recording_entry *entry =
			stream_entry(replay->recording, replay->stream, replay->next);
		int r;

		if (entry->kind == RECORDING_KEYFRAME) {
			replay->next++;
			r = replay_take_keyframe(replay, entry);
			return r < 0 ? r : REPLAY_GAP;
		}
		if (entry->kind != RECORDING_SITES)
			break;
		replay->next++;
	}
	return REPLAY_GAP;
}

static int replay_take_gap(struct replay *replay, const struct recording_entry *entry)
{
	const struct chunk_bytes *contents = &replay->recording->contents;
	int r = recording_read(replay->recording, entry);

	if (r < 0)
		return r;
	if (contents->size < sizeof(replay->gap))
		return -EBADMSG;
	memcpy(&replay->gap, contents->bytes, sizeof(replay->gap));
	replay->first = entry->first;
	replay->count = 0;
	replay->number = entry->last;
	return replay_pass_gap(replay);
}

/* The next chunk that has or lacks events; keyframes in between say what is known. */
static const struct recording_entry *replay_entry(struct replay *replay)
{
	while (replay->next < replay->stream->count) {
		const struct recording_entry *entry =
			stream_entry(replay->recording, replay->stream, replay->next);

		if (entry->kind == RECORDING_EVENTS || entry->kind == RECORDING_GAP)
			return entry;
		replay->next++;
	}
	return NULL;
}

size_t replay_next(struct replay *replay)
{
	(void)replay_entry(replay); /* only to pass over the others */
	return replay->next;
}

int replay_step(struct replay *replay)
{
	const struct recording_entry *entry = replay_entry(replay);

	if (!entry)
		return 0;
	replay->next++;
	if (entry->kind == RECORDING_GAP)
		return replay_take_gap(replay, entry);
	if (entry->first != replay->number + 1)
		return -EBADMSG;
	replay->number = entry->last;
	return replay_take_events(replay, entry, &replay->table);
}

int replay_step_aside(struct replay *replay)
{
	const struct recording_entry *entry = replay_entry(replay);
	struct columns_table table = {0};
	int r;

	if (!entry || entry->kind != RECORDING_EVENTS || entry->first != replay->number + 1)
		return -EBADMSG;
	r = columns_table_copy(&table, &replay->table);
	if (r == 0)
		r = replay_take_events(replay, entry, &table);
	columns_table_deinit(&table);
	return r;
}

uint32_t replay_before(const struct replay *replay, const struct replay_cut *cut)
{
	uint32_t count = replay->count;

	if (cut->has_number) {
		if (cut->number < replay->first)
			return 0;
		return cut->number - replay->first < count
			       ? (uint32_t)(cut->number - replay->first) + 1
			       : count;
	}
	while (count > 0 && replay->events[count - 1].time > cut->stamp)
		count--;
	return count;
}

void replay_counters(const struct replay *replay, struct replay_counters *ret_counters)
{
	*ret_counters = (struct replay_counters){0};
	if (!replay->has_page)
		return;
	idle_counters_choose(&replay->page, ret_counters->hot, ret_counters->cold);
	idle_counters_choose_warm(&replay->page, ret_counters->warm);
	ret_counters->inexact = replay->page.inexact;
	ret_counters->graves = replay->page.graves;
}

void replay_count(struct replay_counters *counters, const struct book_event *event, uint64_t number)
{
	uint32_t op = event->op_slot & 0xff, type = book_meta_type(event->record.meta);

	if (type >= BOOK_TYPES)
		return;
	if ((op & BOOK_OP_MASK) == BOOK_OP_LOST_ALLOC)
		counters->inexact |= BOOK_INEXACT_LOW << type;
	counters->graves += (op & BOOK_OP_MASK) == BOOK_OP_FREE;
	event_count_hot(op, event->time, &event->record, &counters->hot[type]);
	counters->hot[type].number = number;
	if (event_is_rare(op))
		event_count_cold(op, &counters->cold[type]);
}
