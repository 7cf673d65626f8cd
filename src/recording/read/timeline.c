/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes in use over time, from entries alone. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "recording/read/recording-private.h"

/* One stream, which is then added to the others. */
struct timeline {
	const struct recording *recording;
	const struct recording_stream *stream;
	const struct recording_span *span;
	struct recording_sample *samples;
	size_t count;
	size_t done; /* steps that are complete */
	uint64_t level[BOOK_TYPES];
};

size_t recording_step(const struct recording_span *span, size_t count, uint64_t time_ns)
{
	uint64_t length = bits_max(span->to_ns - span->from_ns, 1);
	uint64_t since = time_ns > span->from_ns ? time_ns - span->from_ns : 0;

	return (size_t)bits_min((uint64_t)((unsigned __int128)since * count / length), count - 1);
}

static size_t timeline_step(const struct timeline *line, uint64_t time_ns)
{
	return recording_step(line->span, line->count, time_ns);
}

/* Up to a step nothing happened. */
static void timeline_fill(struct timeline *line, size_t to)
{
	for (; line->done < to; line->done++) {
		struct recording_sample *sample = &line->samples[line->done];

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			sample->bytes[type] = line->level[type];
			sample->high[type] = bits_max(sample->high[type], line->level[type]);
		}
	}
}

static void timeline_add(struct timeline *line, size_t at)
{
	const struct recording_entry *entry = stream_entry(line->recording, line->stream, at);
	const struct timebase *timebase = &line->recording->books[line->stream->book].timebase;
	uint64_t time_ns, last_ns;
	size_t from, to;

	if (!recording_tells(line->recording, line->stream, at, &time_ns) ||
	    time_ns > line->span->to_ns)
		return;
	last_ns = entry->kind == RECORDING_KEYFRAME ? time_ns
						    : timebase_ns(timebase, entry->stamp_last);
	if (last_ns < line->span->from_ns) {
		memcpy(line->level, entry->bytes, sizeof(line->level));
		return;
	}
	from = timeline_step(line, time_ns);
	to = timeline_step(line, last_ns);
	timeline_fill(line, from);
	for (size_t i = from; i <= to; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			uint64_t high = bits_max(entry->high[type], line->level[type]);

			line->samples[i].high[type] = bits_max(line->samples[i].high[type], high);
		}
	}
	timeline_fill(line, to);
	/* What is in use at the end of a chunk that goes on after the span is not of the span. */
	if (last_ns <= line->span->to_ns)
		memcpy(line->level, entry->bytes, sizeof(line->level));
}

/*
 * Books reach back differently: what was in use before the first chunk of a stream is not known, unless that has the
 * first event of all. @ret_samples: of all streams.
 */
static void timeline_reach(const struct timeline *line, const struct recording_filter *filter,
			   struct recording_sample *ret_samples)
{
	const struct recording_owner *owner = &line->recording->books[line->stream->book].owner;
	const struct recording_entry *first = stream_entry(line->recording, line->stream, 0);
	uint64_t time_ns;
	uint8_t types = 0;
	size_t end;

	if (!recording_tells(line->recording, line->stream, 0, &time_ns) ||
	    (first->kind == RECORDING_KEYFRAME
		     ? first->last == 0
		     : first->kind == RECORDING_EVENTS && first->first <= 1))
		return;
	for (size_t at = 0; at < line->stream->count; at++) {
		const struct recording_entry *entry =
			stream_entry(line->recording, line->stream, at);

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (entry->bytes[type] || entry->high[type])
				types |= (uint8_t)(1u << type);
		}
	}
	if (filter->types != 0)
		types &= (uint8_t)filter->types;
	end = time_ns > line->span->to_ns ? line->count : timeline_step(line, time_ns);
	for (size_t i = timeline_step(line, owner->book.start_ns); i < end; i++)
		ret_samples[i].unknown |= types;
}

/* A process that has ended uses nothing. */
static void timeline_end(struct timeline *line)
{
	const struct recording_owner *owner = &line->recording->books[line->stream->book].owner;

	if (owner->has_ended && owner->ending.ended_ns <= line->span->to_ns) {
		timeline_fill(line, timeline_step(line, owner->ending.ended_ns));
		memset(line->level, 0, sizeof(line->level));
	}
	timeline_fill(line, line->count);
}

static void timeline_sum(struct recording_sample *to, const struct recording_sample *from,
			 const struct recording_filter *filter)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (filter->types != 0 && !(filter->types >> type & 1))
			continue;
		to->bytes[type] += from->bytes[type];
		to->high[type] += from->high[type];
	}
}

int recording_timeline(struct recording *recording, const struct recording_filter *filter,
		       const struct recording_span *span, struct recording_sample *ret_samples,
		       size_t count)
{
	CLEANUP_FREE struct recording_sample *own = calloc(count + 1, sizeof(*own));
	const struct recording_span whole = {recording->facts.start_ns, recording->facts.end_ns};
	uint64_t length;

	if (!own)
		return -ENOMEM;
	span = span ? span : &whole;
	length = span->to_ns - span->from_ns;
	memset(ret_samples, 0, count * sizeof(*ret_samples));
	for (size_t i = 0; i < count; i++)
		ret_samples[i].time_ns =
			span->from_ns + (uint64_t)((unsigned __int128)length * (i + 1) / count);
	for (size_t i = 0; count > 0 && i < recording->stream_count; i++) {
		struct timeline line = {.recording = recording,
					.stream = &recording->streams[i],
					.span = span,
					.samples = own,
					.count = count};

		if (!recording_wants(recording, filter, line.stream))
			continue;
		memset(own, 0, count * sizeof(*own));
		for (size_t at = 0; at < line.stream->count; at++)
			timeline_add(&line, at);
		timeline_end(&line);
		timeline_reach(&line, filter, ret_samples);
		for (size_t k = 0; k < count; k++)
			timeline_sum(&ret_samples[k], &own[k], filter);
	}
	return 0;
}
