/* SPDX-License-Identifier: Apache-2.0 */

/* Series over time. */

#include "tui/series.h"

#include <errno.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "tui/chart.h"

static const struct series_key key = {1, 2};

static void add(struct series_set *set, const struct series_key *whose, uint64_t second,
		uint64_t value)
{
	const struct series_sample sample = {
		.time_ns = second * NS_PER_S,
		.values = {value, value * 10},
	};

	assert(series_add(set, whose, &sample) == 0);
}

UNIT(a_point_is_the_maximum_of_its_span)
{
	struct series_set set = SERIES_SET_NULL;
	uint64_t points[4];

	add(&set, &key, 101, 5);
	add(&set, &key, 102, 9);
	add(&set, &key, 103, 1);
	add(&set, &key, 109, 2);
	series_plot(series_find(&set, &key), SERIES_DRAM, 100 * NS_PER_S, 112 * NS_PER_S, points,
		    4);
	assert(points[0] == 9 && points[1] == 1 && points[2] == 2 && points[3] == 2);
	series_plot(series_find(&set, &key), SERIES_L1, 100 * NS_PER_S, 112 * NS_PER_S, points, 4);
	assert(points[0] == 90 && points[1] == 10);
	series_set_deinit(&set);
}

UNIT(before_the_first_and_long_after_the_last_is_nothing)
{
	struct series_set set = SERIES_SET_NULL;
	uint64_t points[6];

	add(&set, &key, 120, 7);
	series_plot(series_find(&set, &key), SERIES_DRAM, 100 * NS_PER_S, 160 * NS_PER_S, points,
		    6);
	assert(points[0] == CHART_NOTHING && points[1] == 7 && points[2] == 7);
	assert(points[3] == CHART_NOTHING && points[5] == CHART_NOTHING);
	series_plot(NULL, SERIES_DRAM, 100 * NS_PER_S, 160 * NS_PER_S, points, 6);
	assert(points[1] == CHART_NOTHING);
	series_set_deinit(&set);
}

UNIT(what_was_before_the_left_edge_goes_on_into_the_chart)
{
	struct series_set set = SERIES_SET_NULL;
	uint64_t points[2];

	add(&set, &key, 95, 7);
	series_plot(series_find(&set, &key), SERIES_DRAM, 100 * NS_PER_S, 104 * NS_PER_S, points,
		    2);
	assert(points[0] == 7 && points[1] == 7);
	series_set_deinit(&set);
}

/* Compared with an array that keeps everything. */
UNIT(a_ring_shows_the_same_as_everything)
{
	struct series_set set = SERIES_SET_NULL;
	uint64_t points[30];

	for (uint64_t i = 1; i <= 3000; i++) {
		add(&set, &key, i, i * 3);
		if (i < 100 || i % 7)
			continue;
		series_plot(series_find(&set, &key), SERIES_DRAM, (i - 30) * NS_PER_S, i * NS_PER_S,
			    points, 30);
		for (uint64_t k = 0; k < 30; k++)
			assert(points[k] == (i - 29 + k) * 3);
	}
	series_set_deinit(&set);
}

UNIT(samples_have_a_maximum)
{
	struct series_set set = SERIES_SET_NULL;
	uint64_t point;

	for (uint64_t i = 0; i < 3 * SERIES_SAMPLES_MAX; i++) {
		const struct series_sample sample = {.time_ns = NS_PER_S + i, .values = {i}};

		assert(series_add(&set, &key, &sample) == 0);
	}
	series_plot(series_find(&set, &key), SERIES_DRAM, 0, 2 * NS_PER_S, &point, 1);
	assert(point == 3 * SERIES_SAMPLES_MAX - 1);
	series_set_deinit(&set);
}

UNIT(lines_are_told_apart_and_forgotten)
{
	struct series_set set = SERIES_SET_NULL;

	for (uint64_t i = 0; i < SERIES_MAX; i++) {
		struct series_key one = {i * 7919 % SERIES_MAX, i};

		add(&set, &one, 100 + i % 2, i);
	}
	for (uint64_t i = 0; i < SERIES_MAX; i++) {
		struct series_key one = {i * 7919 % SERIES_MAX, i}, other = {one.high, i + 1};
		uint64_t point;

		series_plot(series_find(&set, &one), SERIES_DRAM, 99 * NS_PER_S, 102 * NS_PER_S,
			    &point, 1);
		assert(point == i);
		assert(!series_find(&set, &other));
	}
	assert(series_add(&set, &(struct series_key){SERIES_MAX, 0},
			  &(struct series_sample){.time_ns = 1}) == -ENOSPC);
	series_forget(&set, 101 * NS_PER_S);
	assert(set.count == SERIES_MAX / 2);
	assert(!series_find(&set, &(struct series_key){0, 0}));
	series_set_deinit(&set);
}
