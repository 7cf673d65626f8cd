/* SPDX-License-Identifier: Apache-2.0 */

/* Trends of lines over time. */

#include "base/clock.h"
#include "model/growth.h"

#include "base/unit.h"

#define START (UINT64_C(1700000000) * NS_PER_S)

/* Rates are floating point. */
static bool is_near(double a, double b)
{
	double d = a - b;

	return d < 1e-6 && d > -1e-6;
}

UNIT(the_slope_of_a_straight_line_is_found)
{
	struct growth_line line = {.count = 0};
	struct growth_trend trend = {.pid = 1};

	for (uint64_t i = 0; i < 100; i++)
		growth_line_add(&line, START + i * NS_PER_S, (UINT64_C(1) << 50) + i * 10);
	growth_trend_add(&trend, &line);
	assert(is_near(trend.per_second, 10));
	assert(trend.first_ns == START && trend.last_ns == START + 99 * NS_PER_S);
	assert(trend.first_bytes == UINT64_C(1) << 50);
	assert(trend.last_bytes == (UINT64_C(1) << 50) + 990);
}

UNIT(breathing_is_no_growth)
{
	struct growth_line line = {.count = 0};
	struct growth_trend trend = {.pid = 1};

	/* Up and down around the same level, and up at the end by chance. */
	for (uint64_t i = 0; i < 101; i++)
		growth_line_add(&line, START + i * NS_PER_S, i % 2 ? 0 : 1000000);
	growth_trend_add(&trend, &line);
	assert(trend.per_second < 1 && trend.per_second > -1);
}

UNIT(lines_add_up)
{
	struct growth_line up = {.count = 0}, down = {.count = 0}, one = {.count = 0};
	struct growth_line none = {.count = 0};
	struct growth_trend trend = {.pid = 1};

	for (uint64_t i = 0; i < 10; i++) {
		growth_line_add(&up, START + i * NS_PER_S, 100 * i);
		growth_line_add(&down, START + (5 + i) * NS_PER_S, 1000 - 30 * i);
	}
	growth_line_add(&one, START, 5);
	growth_trend_add(&trend, &up);
	growth_trend_add(&trend, &down);
	growth_trend_add(&trend, &one);
	growth_trend_add(&trend, &none);
	assert(is_near(trend.per_second, 70));
	assert(trend.first_ns == START && trend.last_ns == START + 14 * NS_PER_S);
	assert(trend.first_bytes == 0 + 1000 + 5 && trend.last_bytes == 900 + 730 + 5);
}

UNIT(points_of_one_time_or_out_of_order)
{
	struct growth_line line = {.count = 0};
	struct growth_trend trend = {.pid = 1};

	growth_line_add(&line, START, 1);
	growth_line_add(&line, START, 2);
	growth_line_add(&line, START - NS_PER_S, UINT64_MAX);
	growth_trend_add(&trend, &line);
	assert(is_near(trend.per_second, 0) && trend.last_bytes == UINT64_MAX);
}
