/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The most that chosen buffers held at one time. Chunks of sites know it of one stack and type; of several
 * together, of phases, and of whatever else a caller adds up, only the events do.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"
#include "recording/read/replay.h"

struct most {
	const struct recording_sets *sets;
	struct replay replay;
	uint64_t *bytes; /* in use; as ret_most of recording_most() */
	struct recording_most *most;
	bool is_exact;
};

static void most_deinit(struct most *most)
{
	replay_deinit(&most->replay);
	free(most->bytes);
}

static void most_offer(struct most *most, size_t at, uint64_t number, uint64_t stamp)
{
	const struct recording_stream *stream = most->replay.stream;
	const struct recording_known *book = &most->replay.recording->books[stream->book];

	if (most->bytes[at] <= most->most[at].bytes)
		return;
	most->most[at] = (struct recording_most){
		.bytes = most->bytes[at],
		.moment = {.time_ns = timebase_ns(&book->timebase, stamp),
			   .book = stream->book,
			   .device = stream->device,
			   .number = number},
	};
}

/* A file from anybody may free more than was there. */
static void most_add(struct most *most, const struct book_record *record, bool is_free)
{
	uint32_t type = book_meta_type(record->meta);
	uint64_t bytes = event_bytes(record);

	for (size_t i = 0; type < BOOK_TYPES && i < most->sets->count; i++) {
		uint64_t *sum = &most->bytes[i * BOOK_TYPES + type];

		if (!most->sets->has(most->sets->context, i, record))
			continue;
		*sum = is_free ? *sum - bits_min(*sum, bytes) : *sum + bytes;
	}
}

/* What is live in the table, which is as of the chunk before the next one. */
static void most_begin(struct most *most)
{
	const struct replay *replay = &most->replay;
	size_t before = bits_max(replay->next, (size_t)1) - 1;
	uint64_t stamp = stream_entry(replay->recording, replay->stream, before)->stamp_last;

	for (size_t i = 0; i < most->sets->count * BOOK_TYPES; i++)
		most->bytes[i] = 0;
	for (uint32_t slot = 0; slot < replay->table.count; slot++) {
		if (replay->table.records[slot].meta & BOOK_META_LIVE)
			most_add(most, &replay->table.records[slot], false);
	}
	for (size_t i = 0; i < most->sets->count * BOOK_TYPES; i++)
		most_offer(most, i, replay->number, stamp);
}

static void most_apply(struct most *most, const struct book_event *event, uint64_t number)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK, type = book_meta_type(event->record.meta);

	if (op == BOOK_OP_LOST_ALLOC)
		most->is_exact = false;
	if ((op != BOOK_OP_ALLOC && op != BOOK_OP_FREE) || type >= BOOK_TYPES)
		return;
	most_add(most, &event->record, op == BOOK_OP_FREE);
	for (size_t i = 0; op == BOOK_OP_ALLOC && i < most->sets->count; i++)
		most_offer(most, i * BOOK_TYPES + type, number, event->time);
}

static int most_replay(struct most *most)
{
	struct replay *replay = &most->replay;
	int r;

	while ((r = replay_step(replay)) > 0) {
		if (r == REPLAY_GAP) {
			most->is_exact = false;
			most_begin(most);
		}
		for (uint32_t i = 0; i < replay->count; i++)
			most_apply(most, &replay->events[i], replay->first + i);
	}
	return r;
}

/* The first chunk that a replay can begin with; the stream's count if there is none. */
static size_t most_first(const struct recording *recording, const struct recording_stream *stream)
{
	size_t i = 0;

	while (i < stream->count && stream_entry(recording, stream, i)->kind == RECORDING_SITES)
		i++;
	return i;
}

static int most_collect(struct most *most, struct recording *recording,
			const struct recording_stream *stream)
{
	size_t begin = most_first(recording, stream);
	int r;

	if (begin == stream->count)
		return 0;
	r = replay_init(&most->replay, recording, stream, begin);
	if (r < 0)
		return r;
	/* What was freed before the first event that is there nobody knows. */
	most->is_exact = most->replay.number == 0;
	most_begin(most);
	return most_replay(most);
}

int recording_most(struct recording *recording, size_t book, uint32_t device,
		   const struct recording_sets *sets, struct recording_most *ret_most,
		   bool *ret_is_exact)
{
	const struct recording_stream *stream = recording_find_stream(recording, book, device);
	CLEANUP(most_deinit) struct most most = {.sets = sets, .most = ret_most, .is_exact = true};
	int r;

	if (!stream)
		return -ENOENT;
	for (size_t i = 0; i < sets->count * BOOK_TYPES; i++)
		ret_most[i] = (struct recording_most){0};
	most.bytes = calloc(sets->count * BOOK_TYPES + 1, sizeof(*most.bytes));
	if (!most.bytes)
		return -ENOMEM;
	r = most_collect(&most, recording, stream);
	*ret_is_exact = most.is_exact;
	return r;
}
