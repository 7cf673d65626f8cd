/* SPDX-License-Identifier: Apache-2.0 */

/* Series over time. */

#include "tui/series.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tui/chart.h"

/* After the last sample a line goes on for so long: the next one may only be late. */
#define SERIES_HOLD_NS (15 * NS_PER_S)

struct series {
	struct series_key key;
	/* Grows until it is full; then a ring. */
	struct series_sample *samples;
	size_t first, count, capacity;
};

static struct series *series_free(struct series *series)
{
	if (series)
		free(series->samples);
	free(series);
	return NULL;
}

void series_set_deinit(struct series_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		series_free(set->all[i]);
	free(set->all);
	*set = SERIES_SET_NULL;
}

static int series_compare(const struct series_key *a, const struct series_key *b)
{
	if (a->high != b->high)
		return bits_compare(a->high, b->high);
	return bits_compare(a->low, b->low);
}

/* The position of the key, or where it would be. */
static bool series_search(const struct series_set *set, const struct series_key *key,
			  size_t *ret_place)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int r = series_compare(&set->all[middle]->key, key);

		if (r == 0) {
			*ret_place = middle;
			return true;
		}
		if (r < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_place = low;
	return false;
}

const struct series *series_find(const struct series_set *set, const struct series_key *key)
{
	size_t place;

	return series_search(set, key, &place) ? set->all[place] : NULL;
}

static int series_insert(struct series_set *set, const struct series_key *key, size_t place)
{
	struct series **all;
	struct series *series;

	if (set->count >= SERIES_MAX)
		return -ENOSPC;
	all = array_grow(set->all, &set->capacity, set->count + 1, sizeof(struct series *));
	if (!all)
		return -ENOMEM;
	set->all = all;
	series = calloc(1, sizeof(*series));
	if (!series)
		return -ENOMEM;
	series->key = *key;
	memmove(&all[place + 1], &all[place], (set->count - place) * sizeof(struct series *));
	all[place] = series;
	set->count++;
	return 0;
}

static const struct series_sample *series_at(const struct series *series, size_t index)
{
	return &series->samples[(series->first + index) % series->capacity];
}

int series_add(struct series_set *set, const struct series_key *key,
	       const struct series_sample *sample)
{
	struct series *series;
	size_t place;
	int r = series_search(set, key, &place) ? 0 : series_insert(set, key, place);

	if (r < 0)
		return r;
	series = set->all[place];
	/* A sample too old to be drawn makes room; so does the oldest, if there are too many. */
	if (series->count > 0 &&
	    (series->count >= SERIES_SAMPLES_MAX ||
	     series_at(series, 0)->time_ns + (SERIES_SECONDS + 1) * NS_PER_S < sample->time_ns)) {
		series->first = (series->first + 1) % series->capacity;
		series->count--;
	}
	if (series->count == series->capacity) {
		size_t capacity = series->capacity;
		struct series_sample *samples =
			array_grow(series->samples, &capacity, series->count + 1, sizeof(*samples));

		if (!samples)
			return -ENOMEM;
		/* The samples before the first one go after the last one. */
		memcpy(samples + series->capacity, samples, series->first * sizeof(*samples));
		series->samples = samples;
		series->capacity = capacity;
	}
	series->samples[(series->first + series->count) % series->capacity] = *sample;
	series->count++;
	return 0;
}

void series_forget(struct series_set *set, uint64_t before_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct series *series = set->all[i];

		if (series->count == 0 || series_at(series, series->count - 1)->time_ns < before_ns)
			series_free(series);
		else
			set->all[n++] = series;
	}
	set->count = n;
}

void series_plot(const struct series *series, enum series_line line, uint64_t from_ns,
		 uint64_t until_ns, uint64_t *ret_points, size_t count)
{
	size_t total = series ? series->count : 0, i = 0;
	uint64_t last = CHART_NOTHING, last_ns = 0;

	for (; i < total && series_at(series, i)->time_ns < from_ns; i++) {
		last = series_at(series, i)->values[line];
		last_ns = series_at(series, i)->time_ns;
	}
	for (size_t k = 0; k < count; k++) {
		uint64_t end = from_ns + (uint64_t)((double)(until_ns - from_ns) / (double)count *
						    (double)(k + 1));
		uint64_t most = CHART_NOTHING;

		for (; i < total && series_at(series, i)->time_ns <= end; i++) {
			last = series_at(series, i)->values[line];
			last_ns = series_at(series, i)->time_ns;
			most = most == CHART_NOTHING ? last : bits_max(most, last);
		}
		if (most != CHART_NOTHING)
			ret_points[k] = most;
		else
			ret_points[k] = end < last_ns + SERIES_HOLD_NS ? last : CHART_NOTHING;
	}
}
