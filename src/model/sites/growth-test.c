/* SPDX-License-Identifier: Apache-2.0 */

/* Trends of lines over time, and call sites judged by the past. */

#include "model/sites/growth.h"

#include <string.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"

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

#define MIB UINT64_C(1048576)
#define NOW (START + 120 * NS_PER_S)

/* A process that has taken a MiB every five seconds for two minutes, seen at @time_ns. */
static void add_moment(struct growth *growth, uint64_t time_ns, struct snapshot **ret_snapshot)
{
	struct snapshot *snapshot = snapshot_new(time_ns);
	struct snapshot_process process = {
		.id.pid = 10, .id.start_ticks = 1, .alive = true, .exact = true, .comm = "test"};
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	for (uint64_t born = START; born <= time_ns; born += 5 * NS_PER_S) {
		struct snapshot_buffer buffer = {
			.process = index, .size = MIB, .refs = 1, .born_ns = born, .address = born};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	assert(growth_add(growth, snapshot) == 0);
	*ret_snapshot = snapshot;
}

/* Two seconds of looking, in which one buffer comes at most. */
static struct snapshot *look(struct growth *growth)
{
	struct snapshot *snapshot = NULL;

	for (uint64_t i = 0; i < 5; i++) {
		snapshot_free(snapshot);
		add_moment(growth, NOW - 2 * NS_PER_S + i * NS_PER_S / 2, &snapshot);
	}
	return snapshot;
}

/* What the daemon recorded since @since_ns. */
static struct growth_past past_since(uint64_t since_ns)
{
	struct growth_past past = {.pid = 10, .begin_ns = START, .end_ns = NOW};

	for (uint64_t t = since_ns; t <= NOW; t += NS_PER_S)
		assert(growth_past_add(&past, 0, 0, t, (1 + (t - START) / (5 * NS_PER_S)) * MIB) ==
		       0);
	growth_past_finish(&past);
	return past;
}

UNIT(the_past_finds_what_two_seconds_do_not_show)
{
	struct growth growth = GROWTH_NULL;
	struct snapshot *snapshot = look(&growth);
	struct growth_past past = past_since(START + NS_PER_S);

	assert(growth_recall(&growth, snapshot, NULL) == 0);
	assert(growth_recall(&growth, snapshot, &past) == 0);
	growth_finish(&growth, false);
	assert(growth.count == 1 && growth.too_young == 0);
	assert(growth_span(&growth, &growth.sites[0]) > 115 * NS_PER_S);
	assert(growth_bytes(&growth.sites[0]) >= 23 * MIB);
	assert(growth_per_second(&growth, &growth.sites[0]) > 0.19 * (double)MIB);
	assert(growth_per_second(&growth, &growth.sites[0]) < 0.21 * (double)MIB);
	assert(growth_confidence(&growth, &growth.sites[0]) == GROWTH_MEDIUM);
	growth_past_deinit(&past);
	growth_deinit(&growth);
	snapshot_free(snapshot);
}

/* As the daemon judges: one look, and the minute before it. */
UNIT(a_minute_of_past_names_the_site_that_grows)
{
	const uint64_t now = START + 60 * NS_PER_S;
	struct growth growth = GROWTH_NULL;
	struct growth_past past = {.pid = 10, .begin_ns = START, .end_ns = now};
	struct snapshot *snapshot = snapshot_new(now);
	struct snapshot_process process = {
		.id.pid = 10, .id.start_ticks = 1, .alive = true, .exact = true, .comm = "test"};
	struct snapshot_buffer buffer = {
		.size = 100 * MIB, .refs = 1, .born_ns = START, .address = 1, .name = "weights"};

	assert(snapshot_add_process(snapshot, &process, &buffer.process) == 0);
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	for (uint64_t i = 0; i <= 60; i++) {
		buffer = (struct snapshot_buffer){.process = buffer.process,
						  .size = MIB,
						  .refs = 1,
						  .born_ns = START + i * NS_PER_S,
						  .address = 1000 + i,
						  .name = "cache"};
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		assert(growth_past_add(&past, 0, 0, buffer.born_ns, (101 + i) * MIB) == 0);
	}
	growth_past_finish(&past);
	assert(growth_past_rises(&past));
	assert(growth_add(&growth, snapshot) == 0);
	assert(growth_recall(&growth, snapshot, &past) == 0);
	growth_finish(&growth, false);
	assert(growth.count == 1 && strcmp(growth.sites[0].last.name, "cache") == 0);
	assert(growth_per_second(&growth, &growth.sites[0]) > 0.9 * (double)MIB);
	assert(growth_per_second(&growth, &growth.sites[0]) < 1.1 * (double)MIB);
	growth_past_deinit(&past);
	growth_deinit(&growth);
	snapshot_free(snapshot);
}

UNIT(another_process_has_another_past)
{
	struct growth growth = GROWTH_NULL;
	struct snapshot *snapshot = look(&growth);
	struct growth_past past = past_since(START + NS_PER_S);

	past.pid = 11;
	assert(growth_recall(&growth, snapshot, &past) == 0);
	growth_finish(&growth, false);
	assert(growth.count == 0);
	growth_past_deinit(&past);
	growth_deinit(&growth);
	snapshot_free(snapshot);
}

/* Seen at three moments in which it rises: enough for a look, not for a past. */
static size_t sites_with(uint64_t since_ns, bool is_asked, struct growth *growth)
{
	struct growth_past past = past_since(since_ns);
	struct snapshot *snapshot = NULL;

	for (uint64_t i = 0; i < 5; i++) {
		snapshot_free(snapshot);
		add_moment(growth, NOW - (4 - i) * 5 * NS_PER_S, &snapshot);
	}
	assert(growth_recall(growth, snapshot, NULL) == 0);
	assert(growth_recall(growth, snapshot, &past) == 0);
	growth_finish(growth, is_asked);
	growth_past_deinit(&past);
	snapshot_free(snapshot);
	return growth->count;
}

UNIT(a_short_past_is_no_growth_unless_someone_asked_for_a_look)
{
	struct growth growth = GROWTH_NULL;

	assert(sites_with(NOW - 30 * NS_PER_S, false, &growth) == 0 && growth.too_young == 1);
	growth_deinit(&growth);
	assert(sites_with(NOW - 30 * NS_PER_S, true, &growth) == 1 && growth.too_young == 0);
	assert(growth_confidence(&growth, &growth.sites[0]) == GROWTH_LOW);
	growth_deinit(&growth);
}

UNIT(a_short_look_does_not_exaggerate)
{
	struct growth growth = GROWTH_NULL;
	struct snapshot *snapshot = NULL;

	/* Two buffers in six seconds, by chance. */
	add_moment(&growth, START + 59 * NS_PER_S, &snapshot);
	snapshot_free(snapshot);
	add_moment(&growth, START + 65 * NS_PER_S, &snapshot);
	assert(growth_recall(&growth, snapshot, NULL) == 0);
	growth_finish(&growth, true);
	assert(growth.count == 1 && growth_bytes(&growth.sites[0]) == 2 * MIB);
	assert(growth_per_second(&growth, &growth.sites[0]) < 0.21 * (double)MIB);
	growth_deinit(&growth);
	snapshot_free(snapshot);
}

/* A process that has more at each of three looks, and then has ended. */
static size_t sites_after_end(bool keeps_ended)
{
	struct growth growth = {.keeps_ended = keeps_ended};
	size_t count;

	for (uint64_t i = 0; i < 5; i++) {
		struct snapshot *snapshot = snapshot_new(START + i * NS_PER_S);
		struct snapshot_process process = {.id.pid = 7, .alive = i < 3, .comm = "grows"};
		struct snapshot_buffer buffer = {.size = (i + 1) * MIB, .name = "a"};

		assert(snapshot);
		assert(snapshot_add_process(snapshot, &process, &buffer.process) == 0);
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		assert(snapshot_finish(snapshot) == 0);
		assert(growth_add(&growth, snapshot) == 0);
		snapshot_free(snapshot);
	}
	growth_finish(&growth, true);
	count = growth.count;
	assert(count == 0 || growth_bytes(&growth.sites[0]) == 2 * MIB);
	assert(count == 0 ||
	       (growth.sites[0].listed == 1 &&
		strcmp(growth.names[growth.sites[0].last.first_name].name, "a") == 0));
	growth_deinit(&growth);
	return count;
}

UNIT(a_process_that_has_ended_has_grown_only_for_who_looks_at_the_past)
{
	assert(sites_after_end(true) == 1);
	assert(sites_after_end(false) == 0);
}

UNIT(the_sites_of_an_ended_process_hide_none_of_a_living_one)
{
	struct snapshot *snapshot = snapshot_new(START);
	struct growth growth = GROWTH_NULL;

	assert(snapshot);
	for (uint32_t i = 0; i < 3; i++) {
		const struct snapshot_process process = {
			.id = {10 + i, 1}, .alive = i > 0, .exact = true, .comm = "test"};
		struct snapshot_buffer buffer = {
			.size = (3 - i) * MIB, .refs = 1, .born_ns = START};

		assert(snapshot_add_process(snapshot, &process, &buffer.process) == 0);
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	assert(growth_add(&growth, snapshot) == 0);
	assert(growth.count == 2);
	for (size_t i = 0; i < 2; i++)
		assert(growth.sites[i].process.pid == 11 + i &&
		       growth.sites[i].last.bytes == (2 - i) * MIB);
	growth_deinit(&growth);
	snapshot_free(snapshot);
}
