/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The highest moment. An entry says how high each type was within its chunk, so the sum over
 * streams and types is a bound for every span of time between two ends of chunks. Spans are looked
 * into in the order of their bounds, until what was found is as high as the next bound.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"
#include "recording/read/walk.h"

/*
 * Two types that are high at different moments make bounds that no moment reaches, and then every
 * chunk of a long recording would have to be read. After so many spans the best one counts.
 */
#define PEAK_SPANS_MAX 128u

/* From a moment on, the bound of a stream is another one. */
struct peak_change {
	uint64_t time_ns;
	int64_t change;
};

struct peak_span {
	uint64_t from_ns, to_ns;
	uint64_t bound;
};

struct peak {
	struct recording *recording;
	const struct recording_filter *filter;
	struct peak_change *changes;
	struct peak_span *spans;
	size_t count; /* of changes, then of spans */

	uint64_t best;
	struct recording_moment moment;
};

static void peak_deinit(struct peak *peak)
{
	free(peak->changes);
	free(peak->spans);
}

/* What raises comes first: then a bound is never too low between two changes of one moment. */
static int peak_compare_changes(const void *left, const void *right)
{
	const struct peak_change *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return bits_compare(a->time_ns, b->time_ns);
	return (b->change > a->change) - (b->change < a->change);
}

static int peak_compare_spans(const void *left, const void *right)
{
	const struct peak_span *a = left, *b = right;

	if (a->bound != b->bound)
		return bits_compare(b->bound, a->bound);
	return bits_compare(a->from_ns, b->from_ns);
}

static void peak_change(struct peak *peak, uint64_t time_ns, uint64_t *level, uint64_t to)
{
	if (*level != to)
		peak->changes[peak->count++] =
			(struct peak_change){.time_ns = time_ns, .change = (int64_t)(to - *level)};
	*level = to;
}

static void peak_add_stream(struct peak *peak, const struct recording_stream *stream)
{
	const struct recording_known *book = &peak->recording->books[stream->book];
	uint64_t level = 0, last = 0;

	for (size_t i = 0; i < stream->count; i++) {
		const struct recording_entry *entry = stream_entry(peak->recording, stream, i);
		uint64_t from;

		if (!recording_tells(peak->recording, stream, i, &from))
			continue;
		/* Chunks may overlap a little; a gap begins where the last chunk ended. */
		if (entry->kind == RECORDING_GAP)
			from = last;
		last = bits_max(last, entry->kind == RECORDING_KEYFRAME
					      ? from
					      : timebase_ns(&book->timebase, entry->stamp_last));
		peak_change(peak, from, &level,
			    bits_max(level, recording_sum(peak->filter, entry->high)));
		peak_change(peak, last, &level, recording_sum(peak->filter, entry->bytes));
	}
	if (book->owner.has_ended)
		peak_change(peak, bits_max(last, book->owner.ending.ended_ns), &level, 0);
}

/* All changes, sorted; then the spans between them. */
static int peak_find_spans(struct peak *peak)
{
	struct recording *recording = peak->recording;
	uint64_t level = 0;

	peak->changes = calloc(2 * recording->file.count + recording->stream_count + 1,
			       sizeof(*peak->changes));
	if (!peak->changes)
		return -ENOMEM;
	for (size_t i = 0; i < recording->stream_count; i++) {
		if (recording_wants(recording, peak->filter, &recording->streams[i]))
			peak_add_stream(peak, &recording->streams[i]);
	}
	if (peak->count == 0)
		return -ENOENT;
	qsort(peak->changes, peak->count, sizeof(*peak->changes), peak_compare_changes);
	peak->spans = calloc(peak->count, sizeof(*peak->spans));
	if (!peak->spans)
		return -ENOMEM;
	for (size_t i = 0; i < peak->count; i++) {
		level += (uint64_t)peak->changes[i].change;
		peak->spans[i] = (struct peak_span){
			.from_ns = peak->changes[i].time_ns,
			.to_ns = i + 1 < peak->count ? peak->changes[i + 1].time_ns
						     : recording->facts.end_ns,
			.bound = level,
		};
	}
	qsort(peak->spans, peak->count, sizeof(*peak->spans), peak_compare_spans);
	return 0;
}

static void peak_offer(struct peak *peak, uint64_t bytes, uint64_t time_ns,
		       const struct recording_event *event)
{
	if (bytes <= peak->best)
		return;
	peak->best = bytes;
	peak->moment = (struct recording_moment){
		.time_ns = time_ns,
		.book = event ? (uint32_t)event->book : RECORDING_NONE,
		.device = event ? event->device : RECORDING_NONE,
		.number = event ? event->number : 0,
	};
}

static int peak_look(struct peak *peak, const struct peak_span *span)
{
	CLEANUP(walk_deinit) struct walk walk;
	struct recording_moment from, to;
	struct recording_event event;
	uint64_t bytes;
	int r;

	/* The first event of a span is in it. */
	recording_moment_at(peak->recording, span->from_ns, &from);
	recording_moment_at(peak->recording, span->to_ns, &to);
	from.time_ns = span->from_ns - 1;
	r = walk_init(&walk, peak->recording, peak->filter, &from, &to);
	if (r < 0)
		return r;
	bytes = walk_bytes(&walk, span->from_ns);
	peak_offer(peak, bytes, from.time_ns, NULL);
	while ((r = walk_next(&walk, &event)) > 0) {
		uint32_t op, type;

		if (!event.event) {
			bytes = walk_bytes(&walk, event.time_ns);
			continue;
		}
		op = event.event->op_slot & BOOK_OP_MASK;
		type = book_meta_type(event.event->record.meta);
		if (peak->filter->types != 0 && !(peak->filter->types >> type & 1))
			continue;
		if (op == BOOK_OP_ALLOC) {
			bytes += event_bytes(&event.event->record);
			peak_offer(peak, bytes, event.time_ns, &event);
		} else if (op == BOOK_OP_FREE) {
			bytes -= event_bytes(&event.event->record);
		}
	}
	return r;
}

int recording_peak(struct recording *recording, const struct recording_filter *filter,
		   struct recording_moment *ret_moment, uint64_t *ret_bytes)
{
	CLEANUP(peak_deinit) struct peak peak = {.recording = recording, .filter = filter};
	int r = peak_find_spans(&peak);

	recording_moment_at(recording, recording->facts.start_ns, &peak.moment);
	for (size_t i = 0; r == 0 && i < peak.count && i < PEAK_SPANS_MAX; i++) {
		if (peak.spans[i].bound <= peak.best)
			break;
		r = peak_look(&peak, &peak.spans[i]);
	}
	if (r < 0)
		return r;
	*ret_moment = peak.moment;
	*ret_bytes = peak.best;
	return 0;
}
