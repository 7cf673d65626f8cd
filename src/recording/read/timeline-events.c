/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes in use over time, refined by events: a chunk of the index may be longer than a step. */

#include <string.h>

#include "base/bits.h"
#include "recording/read/recording-private.h"

struct timeline_events {
	const struct recording_span *span;
	struct recording_sample *samples;
	size_t count;
	size_t next; /* first step that is not known by events */
	size_t book; /* of the last event */
	bool is_begun;
	uint64_t level[BOOK_TYPES];
};

/* Up to a step nothing happened. */
static void timeline_events_fill(struct timeline_events *line, size_t to)
{
	for (; line->next < to; line->next++) {
		memcpy(line->samples[line->next].bytes, line->level, sizeof(line->level));
		memcpy(line->samples[line->next].high, line->level, sizeof(line->level));
	}
}

/* What is in use after an event. */
static void timeline_events_take(struct timeline_events *line, const struct recording_event *event)
{
	line->is_begun = true;
	line->book = event->book;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		line->level[type] = event->hot[type].bytes;
}

static int timeline_events_see(void *context, const struct recording_event *event)
{
	struct timeline_events *line = context;
	size_t step = recording_step(line->span, line->count, event->time_ns);
	struct recording_sample *sample;

	if (event->time_ns > line->span->to_ns)
		return 1;
	/* Of what was before the span, only what it left is in it. */
	if (event->time_ns < line->span->from_ns && line->next == 0) {
		timeline_events_take(line, event);
		return 0;
	}
	/* Events of a device are in their own order; its threads' clocks may differ a little. */
	if (line->next > 0)
		step = bits_max(step, line->next - 1);
	/* What was in use before the first event is known from the index. */
	if (!line->is_begun)
		line->next = step;
	else
		timeline_events_fill(line, step);
	sample = &line->samples[step];
	if (step == line->next) {
		memcpy(sample->high, line->level, sizeof(sample->high));
		line->next++;
	}
	timeline_events_take(line, event);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		sample->high[type] = bits_max(sample->high[type], line->level[type]);
	memcpy(sample->bytes, line->level, sizeof(sample->bytes));
	return 0;
}

int recording_timeline_refine(struct recording *recording, const struct recording_filter *filter,
			      const struct recording_span *span, struct recording_sample *samples,
			      size_t count)
{
	struct timeline_events line = {.span = span, .samples = samples, .count = count};
	const struct recording_owner *owner;
	int r = count > 0
			? recording_walk(recording, filter, NULL, NULL, timeline_events_see, &line)
			: 0;

	if (r < 0 || !line.is_begun)
		return r < 0 ? r : 0;
	owner = recording_owner(recording, line.book);
	timeline_events_fill(&line, owner->has_ended && owner->ending.ended_ns <= span->to_ns
					    ? recording_step(span, count, owner->ending.ended_ns)
					    : count);
	return 0;
}
