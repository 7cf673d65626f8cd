/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judging growth from the past. Several spans of time are tried, the longest first: a leak may have begun
 * recently, and a long one is surer. The limits were chosen with growth-past-test.c, which counts what is
 * found, missed and wrongly called growth in generated workloads.
 */

#include "model/sites/growth-past.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "model/merge.h"

#define PAST_SLOTS 6u        /* parts of a span; at most one of them may be without births */
#define PAST_BIRTHS_LEAST 5u /* in a span */
#define PAST_SLOT_SHARE 0.6  /* the most that one part may have of the bytes */
#define PAST_SLOWING 1.5     /* how much more a span may have than the next one of equal length */
#define PAST_FLOOR_SHARE 0.5 /* of the survivors by which the least that was held must have risen */
#define PAST_PEAK_SHARE 0.25 /* likewise the most, compared with the time before */

const struct growth_past_span growth_past_spans[GROWTH_PAST_SPANS] = {
	{600 * NS_PER_S, 1},
	{3600 * NS_PER_S, 10},
	{12 * 3600 * NS_PER_S, 60},
};

void growth_past_deinit(struct growth_past *past)
{
	free(past->lines);
	*past = GROWTH_PAST_NULL;
}

static struct growth_past_line *growth_past_line(struct growth_past *past, uint64_t device,
						 uint32_t type)
{
	struct growth_past_line *lines;

	/* Points come line by line. */
	for (size_t i = past->count; i-- > 0;) {
		if (past->lines[i].device == device && past->lines[i].type == type)
			return &past->lines[i];
	}
	lines = array_grow(past->lines, &past->capacity, past->count + 1, sizeof(*lines));
	if (!lines)
		return NULL;
	past->lines = lines;
	lines += past->count++;
	*lines = (struct growth_past_line){.device = device, .type = type};
	for (size_t i = 0; i < GROWTH_PAST_BUCKETS; i++)
		lines->low[i] = UINT64_MAX;
	return lines;
}

static size_t growth_past_bucket(const struct growth_past *past, uint64_t time_ns)
{
	uint64_t width = (past->end_ns - past->begin_ns) / GROWTH_PAST_BUCKETS + 1;

	if (time_ns <= past->begin_ns)
		return 0;
	return (size_t)bits_min((time_ns - past->begin_ns) / width, GROWTH_PAST_BUCKETS - 1);
}

int growth_past_add(struct growth_past *past, uint64_t device, uint32_t type, uint64_t time_ns,
		    uint64_t bytes)
{
	struct growth_past_line *line;
	size_t at;

	if (time_ns < past->begin_ns || time_ns > past->end_ns)
		return 0;
	line = growth_past_line(past, device, type);
	if (!line)
		return -ENOMEM;
	at = growth_past_bucket(past, time_ns);
	line->low[at] = bits_min(line->low[at], bytes);
	line->high[at] = bits_max(line->high[at], bytes);
	line->last[at] = bytes;
	if (past->known_ns == 0 || time_ns < past->known_ns)
		past->known_ns = time_ns;
	return 0;
}

/* Where there is no point nothing has changed, and before the first one there was nothing. */
void growth_past_finish(struct growth_past *past)
{
	for (size_t i = 0; i < past->count; i++) {
		struct growth_past_line *line = &past->lines[i];
		uint64_t before = 0;

		for (size_t k = 0; k < GROWTH_PAST_BUCKETS; k++) {
			if (line->low[k] > line->high[k])
				line->low[k] = line->high[k] = line->last[k] = before;
			before = line->last[k];
		}
	}
}

static uint64_t growth_past_least(const struct growth_past_line *line, size_t from, size_t to)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = from; i < to; i++)
		least = bits_min(least, line->low[i]);
	return least;
}

bool growth_past_rises(const struct growth_past *past)
{
	for (size_t i = 0; i < past->count; i++) {
		const struct growth_past_line *line = &past->lines[i];

		if (growth_past_least(line, GROWTH_PAST_BUCKETS / 2, GROWTH_PAST_BUCKETS) >
		    growth_past_least(line, 0, GROWTH_PAST_BUCKETS / 2))
			return true;
	}
	return false;
}

/* The least and the most that was held of a type in a time, over all devices. */
static void growth_past_extremes(const struct growth_past *past, uint32_t type, uint64_t from_ns,
				 uint64_t to_ns, uint64_t *ret_low, uint64_t *ret_high)
{
	size_t first = growth_past_bucket(past, from_ns), end = growth_past_bucket(past, to_ns);

	*ret_low = *ret_high = 0;
	for (size_t i = 0; i < past->count; i++) {
		const struct growth_past_line *line = &past->lines[i];
		uint64_t low = UINT64_MAX, high = 0;

		for (size_t k = first; k <= end && line->type == type; k++) {
			low = bits_min(low, line->low[k]);
			high = bits_max(high, line->high[k]);
		}
		if (line->type == type) {
			*ret_low = merge_add(*ret_low, low);
			*ret_high = merge_add(*ret_high, high);
		}
	}
}

/* What was allocated in each part of the @span_ns before @now_ns, and is alive. */
struct growth_past_slots {
	double bytes[PAST_SLOTS];
	double sum;
	uint64_t births;
	uint32_t filled;
};

static struct growth_past_slots growth_past_slots(uint64_t now_ns, uint64_t span_ns,
						  const struct growth_birth *births, size_t count)
{
	struct growth_past_slots slots = {.sum = 0};

	while (count > 0 && births[count - 1].time_ns > now_ns)
		count--;
	for (size_t i = count; i-- > 0 && births[i].time_ns + span_ns > now_ns;) {
		uint64_t age = now_ns - bits_min(births[i].time_ns, now_ns);
		size_t at = (size_t)bits_min(age / (span_ns / PAST_SLOTS + 1), PAST_SLOTS - 1);

		at = PAST_SLOTS - 1 - at;
		slots.filled += slots.bytes[at] == 0 && births[i].bytes > 0;
		slots.bytes[at] += (double)births[i].bytes;
		slots.sum += (double)births[i].bytes;
		slots.births++;
	}
	return slots;
}

/*
 * Whether fewer survivors come: a cache fills up, or a model is nearly loaded. Few births may be uneven
 * by chance.
 */
static bool growth_past_slows(double before, double after, uint64_t births)
{
	return before > (PAST_SLOWING + 4.0 / (double)(births + 1)) * after;
}

/* Whether survivors are of all ages, and go on coming. */
static bool growth_past_is_steady(const struct growth_past_slots *slots)
{
	double halves[2] = {0, 0};

	if (slots->births < PAST_BIRTHS_LEAST || slots->filled + 1 < PAST_SLOTS)
		return false;
	for (size_t i = 0; i < PAST_SLOTS; i++) {
		if (slots->bytes[i] > PAST_SLOT_SHARE * slots->sum)
			return false;
		halves[i / (PAST_SLOTS / 2)] += slots->bytes[i];
	}
	return !growth_past_slows(halves[0], halves[1], slots->births);
}

/* Whether the process held more and more, too, from each third of the time to the next. */
static bool growth_past_rose(const struct growth_past *past, uint32_t type, uint64_t span_ns,
			     const struct growth_past_slots *slots)
{
	uint64_t start = past->end_ns - span_ns, third = span_ns / 3;
	uint64_t low, high, before_low = 0, before_high;

	for (uint64_t i = 0; i < 3; i++) {
		double survivors = i > 0 ? slots->bytes[2 * i - 2] + slots->bytes[2 * i - 1] : 0;

		growth_past_extremes(past, type, start + i * third, start + (i + 1) * third, &low,
				     &high);
		if (i > 0 && (double)low - (double)before_low < PAST_FLOOR_SHARE * survivors)
			return false;
		before_low = low;
	}
	if (start < past->known_ns + span_ns / 2)
		return true; /* there is hardly a time before */
	growth_past_extremes(past, type, past->known_ns, start, &before_low, &before_high);
	return (double)high - (double)before_high >= PAST_PEAK_SHARE * slots->sum;
}

struct growth_verdict growth_past_judge(const struct growth_past *past, uint32_t type,
					const struct growth_birth *births, size_t count)
{
	uint64_t known = past->known_ns ? past->end_ns - past->known_ns : 0;

	for (uint64_t span = known; span >= GROWTH_PAST_LEAST_NS; span /= 2) {
		struct growth_past_slots slots =
			growth_past_slots(past->end_ns, span, births, count);

		struct growth_past_slots before =
			growth_past_slots(past->end_ns - span, span, births, count);

		if (growth_past_is_steady(&slots) &&
		    !growth_past_slows(before.sum, slots.sum, slots.births) &&
		    growth_past_rose(past, type, span, &slots))
			return (struct growth_verdict){.span_ns = span,
						       .bytes = (uint64_t)slots.sum,
						       .buffers = slots.births};
	}
	return (struct growth_verdict){.span_ns = 0};
}

bool growth_past_has_seen(const struct growth_past *past, uint32_t type, uint64_t span_ns,
			  uint64_t bytes)
{
	uint64_t start = past->end_ns - bits_min(span_ns, past->end_ns - past->begin_ns);
	uint64_t low, high, before_low, before_high;

	if (past->known_ns == 0 || start <= past->known_ns)
		return false;
	growth_past_extremes(past, type, start, past->end_ns, &low, &high);
	growth_past_extremes(past, type, past->known_ns, start, &before_low, &before_high);
	return (double)high - (double)before_high < PAST_PEAK_SHARE * (double)bytes;
}
