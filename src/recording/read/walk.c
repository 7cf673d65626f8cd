/* SPDX-License-Identifier: Apache-2.0 */

/* Streams in a heap, by the time of what comes next in each. */

#include "recording/read/walk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"

static const struct timebase *walk_timebase(const struct walk *walk, const struct walk_stream *one)
{
	return &walk->recording->books[one->stream->book].timebase;
}

static struct replay_cut walk_cut(const struct walk *walk, const struct recording_stream *stream,
				  const struct recording_moment *moment)
{
	if (moment->book == stream->book && moment->device == stream->device)
		return (struct replay_cut){.has_number = true, .number = moment->number};
	return (struct replay_cut){
		.stamp = recording_stamp(&walk->recording->books[stream->book], moment->time_ns)};
}

/* The first chunk from which a stream can be read at all; its count if there is none. */
static size_t walk_first(const struct walk *walk, const struct recording_stream *stream)
{
	for (size_t i = 0; i < stream->count; i++) {
		const struct recording_entry *entry = stream_entry(walk->recording, stream, i);

		if (entry->kind == RECORDING_KEYFRAME || entry->kind == RECORDING_GAP ||
		    (entry->kind == RECORDING_EVENTS && entry->first == 1))
			return i;
	}
	return stream->count;
}

static void walk_close(struct walk_stream *one)
{
	if (one->is_open)
		replay_deinit(&one->replay);
	one->is_open = false;
}

static void walk_take_counters(struct walk *walk, struct walk_stream *one)
{
	replay_counters(&one->replay, &walk->counters);
	memcpy(one->hot, walk->counters.hot, sizeof(one->hot));
}

static void walk_count(struct walk_stream *one, uint32_t i)
{
	const struct book_event *event = &one->replay.events[i];
	uint32_t type = book_meta_type(event->record.meta);

	if (type < BOOK_TYPES)
		event_count_hot(event->op_slot & 0xff, event->time, &event->record,
				&one->hot[type]);
}

/* The time of what comes next. An event may be stamped before the one that it follows. */
static void walk_due(struct walk *walk, struct walk_stream *one)
{
	const struct recording_entry *entry;
	uint64_t stamp;

	if (one->next < one->count) {
		assert(one->replay.events); /* a chunk was loaded */
		stamp = one->replay.events[one->next].time;
	} else {
		entry = stream_entry(walk->recording, one->stream, one->replay.next);
		stamp = entry->kind == RECORDING_GAP ? entry->stamp_last : entry->stamp_first;
	}
	one->time_ns = bits_max(one->time_ns, timebase_ns(walk_timebase(walk, one), stamp));
}

/* Whether a chunk is left. */
static bool walk_has_chunk(struct walk_stream *one)
{
	return replay_next(&one->replay) < one->stream->count && one->replay.next <= one->to_at;
}

static int walk_open(struct walk *walk, struct walk_stream *one)
{
	int r = replay_init(&one->replay, walk->recording, one->stream, one->begin);

	one->is_open = true;
	if (r == 0)
		walk_take_counters(walk, one);
	return r;
}

/* Takes the next chunk apart. */
static int walk_load(struct walk *walk, struct walk_stream *one)
{
	size_t at = replay_next(&one->replay);
	int r = replay_step(&one->replay);

	if (r < 0)
		return r;
	one->next = 0;
	one->has_gap = r == REPLAY_GAP;
	one->count = one->replay.count;
	if (one->has_gap)
		walk_take_counters(walk, one);
	else if (at == one->to_at)
		one->count = replay_before(&one->replay, &one->to);
	return 0;
}

/* Passes over what is not after @from. */
static int walk_skip(struct walk *walk, struct walk_stream *one)
{
	size_t at;
	int r = replay_find(walk->recording, one->stream, &one->from, &at);

	if (r == -ENOENT)
		return 0; /* all of it is later */
	r = replay_begin(walk->recording, one->stream, at, 0, &one->begin);
	if (r < 0)
		return r;
	r = walk_open(walk, one);
	while (r == 0 && replay_next(&one->replay) <= at) {
		bool is_last = one->replay.next == at;
		uint32_t skipped;

		r = walk_load(walk, one);
		if (r < 0)
			break;
		skipped = is_last ? replay_before(&one->replay, &one->from) : one->replay.count;
		while (one->next < skipped && one->next < one->count)
			walk_count(one, one->next++);
		one->has_gap = false;
	}
	return r;
}

static bool walk_is_earlier(const struct walk *walk, size_t a, size_t b)
{
	const struct walk_stream *one = &walk->streams[a], *other = &walk->streams[b];

	return one->time_ns != other->time_ns ? one->time_ns < other->time_ns : a < b;
}

static void walk_sift(struct walk *walk, size_t at)
{
	for (;;) {
		size_t first = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < walk->heap_count;
		     child++) {
			if (walk_is_earlier(walk, walk->heap[child], walk->heap[first]))
				first = child;
		}
		if (first == at)
			return;
		size_t other = walk->heap[at];

		walk->heap[at] = walk->heap[first];
		walk->heap[first] = other;
		at = first;
	}
}

static int walk_add(struct walk *walk, const struct recording_stream *stream,
		    const struct recording_moment *from, const struct recording_moment *to)
{
	struct walk_stream *one = &walk->streams[walk->count];
	int r = 0;

	*one = (struct walk_stream){.stream = stream, .to_at = stream->count};
	one->begin = walk_first(walk, stream);
	one->replay =
		(struct replay){.recording = walk->recording, .stream = stream, .next = one->begin};
	if (to) {
		one->to = walk_cut(walk, stream, to);
		if (replay_find(walk->recording, stream, &one->to, &one->to_at) < 0)
			return 0;
	}
	walk->count++;
	if (from) {
		one->from = walk_cut(walk, stream, from);
		r = walk_skip(walk, one);
	}
	if (r == 0 && (one->next < one->count || walk_has_chunk(one))) {
		walk_due(walk, one);
		walk->heap[walk->heap_count++] = walk->count - 1;
	}
	return r;
}

int walk_init(struct walk *walk, struct recording *recording, const struct recording_filter *filter,
	      const struct recording_moment *from, const struct recording_moment *to)
{
	int r = 0;

	*walk = (struct walk){
		.recording = recording,
		.filter = filter,
		.streams = calloc(recording->stream_count + 1, sizeof(*walk->streams)),
		.heap = calloc(recording->stream_count + 1, sizeof(*walk->heap)),
	};
	if (!walk->streams || !walk->heap)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < recording->stream_count; i++) {
		if (recording_wants(recording, filter, &recording->streams[i]))
			r = walk_add(walk, &recording->streams[i], from, to);
	}
	for (size_t i = walk->heap_count; i > 0; i--)
		walk_sift(walk, i - 1);
	return r;
}

void walk_deinit(struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		walk_close(&walk->streams[i]);
	free(walk->streams);
	free(walk->heap);
	*walk = (struct walk){0};
}

/* After something was taken from the stream on top. */
static void walk_settle(struct walk *walk)
{
	struct walk_stream *one = &walk->streams[walk->heap[0]];

	if (one->next < one->count || one->has_gap || walk_has_chunk(one)) {
		if (!one->has_gap)
			walk_due(walk, one);
	} else {
		walk_close(one);
		walk->heap[0] = walk->heap[--walk->heap_count];
	}
	walk_sift(walk, 0);
}

static void walk_tell(const struct walk_stream *one, struct recording_event *ret_event)
{
	*ret_event = (struct recording_event){
		.book = one->stream->book,
		.device = one->stream->device,
		.time_ns = one->time_ns,
		.number = one->replay.first + one->next,
		.hot = one->hot,
	};
}

int walk_next(struct walk *walk, struct recording_event *ret_event)
{
	while (walk->heap_count > 0) {
		struct walk_stream *one = &walk->streams[walk->heap[0]];

		if (one->has_gap) {
			walk_tell(one, ret_event);
			ret_event->gap = &one->replay.gap;
			ret_event->number = one->replay.first + one->replay.gap.events - 1;
			one->has_gap = false;
			walk_settle(walk);
			return 1;
		}
		if (one->next < one->count) {
			walk_count(one, one->next);
			walk_tell(one, ret_event);
			ret_event->event = &one->replay.events[one->next++];
			/* Its chunk stays until the next call, which may load another one. */
			if (one->next < one->count)
				walk_settle(walk);
			return 1;
		}
		if (walk_has_chunk(one)) {
			int r = one->is_open ? 0 : walk_open(walk, one);

			if (r == 0)
				r = walk_load(walk, one);
			if (r < 0)
				return r;
		}
		walk_settle(walk);
	}
	return 0;
}

uint64_t walk_bytes(const struct walk *walk, uint64_t time_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < walk->count; i++) {
		const struct recording_owner *owner =
			&walk->recording->books[walk->streams[i].stream->book].owner;
		uint64_t bytes[BOOK_TYPES];

		if (owner->has_ended && owner->ending.ended_ns < time_ns)
			continue;

		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			bytes[type] = walk->streams[i].hot[type].bytes;
		sum += recording_sum(walk->filter, bytes);
	}
	return sum;
}

int recording_walk(struct recording *recording, const struct recording_filter *filter,
		   const struct recording_moment *from, const struct recording_moment *to,
		   recording_fn *fn, void *context)
{
	CLEANUP(walk_deinit) struct walk walk;
	struct recording_event event;
	int r = walk_init(&walk, recording, filter, from, to);

	while (r == 0) {
		r = walk_next(&walk, &event);
		if (r <= 0)
			return r;
		r = 0;
		if (!event.event || filter->types == 0 ||
		    filter->types >> book_meta_type(event.event->record.meta) & 1)
			r = fn(context, &event);
	}
	return r;
}
