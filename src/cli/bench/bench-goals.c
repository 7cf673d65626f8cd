/* SPDX-License-Identifier: Apache-2.0 */

/* The goals and how they are judged. */

#include "cli/bench/bench-goals.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "cli/bench/bench-report.h"

#define BENCH_GOALS_1K 1000u
#define BENCH_GOALS_100K 100000u
#define BENCH_GOALS_1M 1000000u

/*
 * The same for stacks that repeat and for those that change. A stack costs the same however many
 * buffers are live: what 1k allows for it, plus the goal of event there.
 */
#define BENCH_GOALS_BY(row, live, must, aim)                                            \
	{                                                                               \
		row " / getppid", BENCH_GOALS_RATIO, row, live, "getppid", 0, must, aim \
	}
#define BENCH_GOALS_MORE(row, must, aim)                                                       \
	{                                                                                      \
		"(" row " - event) / floor", BENCH_GOALS_FLOORS, row, BENCH_GOALS_1K, "event", \
			BENCH_GOALS_1K, must, aim                                              \
	}
#define BENCH_GOALS_STACKS(changing)                                                       \
	BENCH_GOALS_BY("event_default" changing, BENCH_GOALS_1K, 1.0, 0.8),                \
		BENCH_GOALS_BY("event_default" changing, BENCH_GOALS_100K, 1.7, 1.7),      \
		BENCH_GOALS_BY("event_default" changing, BENCH_GOALS_1M, 2.6, 2.6),        \
		BENCH_GOALS_MORE("event_stack" changing, 3.5, 2.5),                        \
		BENCH_GOALS_MORE("event_stack_unwind" changing, 8, 6),                     \
		BENCH_GOALS_BY("event_stack" changing, BENCH_GOALS_1K, 0.7, 0.5),          \
		BENCH_GOALS_BY("event_stack" changing, BENCH_GOALS_100K, 1.2, 0.9),        \
		BENCH_GOALS_BY("event_stack" changing, BENCH_GOALS_1M, 2.7, 2.0),          \
		BENCH_GOALS_BY("event_stack_unwind" changing, BENCH_GOALS_1K, 2.2, 1.7),   \
		BENCH_GOALS_BY("event_stack_unwind" changing, BENCH_GOALS_100K, 2.7, 2.1), \
		BENCH_GOALS_BY("event_stack_unwind" changing, BENCH_GOALS_1M, 4.2, 3.2)

const struct bench_goal bench_goals[] = {
	{"off - empty_call, ns", BENCH_GOALS_EXTRA, "off", 0, "empty_call", 0, 1, 1},
	{"event / getppid", BENCH_GOALS_RATIO, "event", BENCH_GOALS_1K, "getppid", 0, 0.5, 0.4},
	{"event / getppid", BENCH_GOALS_RATIO, "event", BENCH_GOALS_100K, "getppid", 0, 1.0, 0.8},
	{"event / getppid", BENCH_GOALS_RATIO, "event", BENCH_GOALS_1M, "getppid", 0, 2.5, 1.9},
	{"event / floor", BENCH_GOALS_RATIO, "event", BENCH_GOALS_1K, "floor", 0, 3.0, 2.4},
	{"socket_baseline / event", BENCH_GOALS_TIMES, "event", BENCH_GOALS_1K, "socket_baseline",
	 BENCH_GOALS_1K, 15, 25},
	{"event, p99 / p50", BENCH_GOALS_TAIL, "event", BENCH_GOALS_1K, NULL, 0, 5, 3},
	{"event, p99 / p50", BENCH_GOALS_TAIL, "event", BENCH_GOALS_100K, NULL, 0, 5, 3},
	{"event, p99 / p50", BENCH_GOALS_TAIL, "event", BENCH_GOALS_1M, NULL, 0, 5, 3},
	{"two devices / event", BENCH_GOALS_RATIO, "event_2threads_two_devices", BENCH_GOALS_1K,
	 "event", BENCH_GOALS_1K, 1.3, 1.1},
	{"one device / event", BENCH_GOALS_RATIO, "event_2threads_one_device", BENCH_GOALS_1K,
	 "event", BENCH_GOALS_1K, 5, 3},
	{"threads_2_total", BENCH_GOALS_LEAST, "threads_2_total", 0, NULL, 0, 0.6, 0.6},
	{"threads_4_total", BENCH_GOALS_LEAST, "threads_4_total", 0, NULL, 0, 0.6, 0.6},
	{"threads_8_total", BENCH_GOALS_LEAST, "threads_8_total", 0, NULL, 0, 0.6, 0.6},
	{"threads_16_total", BENCH_GOALS_LEAST, "threads_16_total", 0, NULL, 0, 0.6, 0.6},
	{"(event_named - event) / getppid", BENCH_GOALS_SHARE, "event_named", BENCH_GOALS_1K,
	 "event", BENCH_GOALS_1K, 0.2, 0.2},
	BENCH_GOALS_STACKS(""),
	BENCH_GOALS_STACKS("_changing"),
	{"python_event / getppid", BENCH_GOALS_RATIO, "python_event", BENCH_GOALS_1K, "getppid", 0,
	 1, 1},
	{"python_event_frames / getppid", BENCH_GOALS_RATIO, "python_event_frames", BENCH_GOALS_1K,
	 "getppid", 0, 2, 2},
	{"python_event_merged / getppid", BENCH_GOALS_RATIO, "python_event_merged", BENCH_GOALS_1K,
	 "getppid", 0, 4, 4},
	{"mesh32_per_device / getppid", BENCH_GOALS_RATIO, "mesh32_per_device", BENCH_GOALS_1K,
	 "getppid", 0, 0.4, 0.25},
	{"mesh32_per_device / floor", BENCH_GOALS_RATIO, "mesh32_per_device", BENCH_GOALS_1K,
	 "floor", 0, 3.0, 2.5},
	{"snapshot / snapshot_pread", BENCH_GOALS_RATIO, "snapshot", 10000, "snapshot_pread", 10000,
	 1.3, 1.2},
	{"snapshot / snapshot_pread", BENCH_GOALS_RATIO, "snapshot", 16000000, "snapshot_pread",
	 16000000, 1.3, 1.2},
	{"snapshot / snapshot_pread", BENCH_GOALS_RATIO, "snapshot", BENCH_GOALS_1M,
	 "snapshot_pread", BENCH_GOALS_1M, 1.3, 1.2},
	{"first_event, us", BENCH_GOALS_US, "first_event", 0, NULL, 0, 300, 300},
	{"bytes_per_buffer", BENCH_GOALS_FIGURE, "bytes_per_buffer", BENCH_GOALS_1K, NULL, 0, 64,
	 64},
	{"bytes_per_buffer", BENCH_GOALS_FIGURE, "bytes_per_buffer", BENCH_GOALS_100K, NULL, 0, 64,
	 64},
	{"bytes_per_buffer", BENCH_GOALS_FIGURE, "bytes_per_buffer", BENCH_GOALS_1M, NULL, 0, 64,
	 64},
	{"resident_no_device, KiB", BENCH_GOALS_FIGURE, "resident_no_device", 0, NULL, 0, 64, 64},
	{"resident_per_device, KiB", BENCH_GOALS_FIGURE, "resident_per_device", 0, NULL, 0, 16, 16},
};

const size_t bench_goals_count = ARRAY_SIZE(bench_goals);

bool bench_goals_is_wanted(struct bench *bench, const struct bench_goal *goal)
{
	return goal->kind == BENCH_GOALS_FIGURE || goal->kind == BENCH_GOALS_LEAST ||
	       bench_row_find(bench, goal->row, goal->live);
}

double bench_goals_value(struct bench *bench, const struct bench_goal *goal)
{
	double row = bench_report_p50(bench, goal->row, goal->live);
	double other = goal->other ? bench_report_p50(bench, goal->other, goal->other_live) : NAN;
	const struct bench_figure *figure;

	switch (goal->kind) {
	case BENCH_GOALS_RATIO:
		return row / other;
	case BENCH_GOALS_TIMES:
		return other / row;
	case BENCH_GOALS_TAIL:
		return bench_report_p99(bench, goal->row, goal->live) / row;
	case BENCH_GOALS_EXTRA:
		return row - other;
	case BENCH_GOALS_SHARE:
		return (row - other) / bench_report_p50(bench, "getppid", 0);
	case BENCH_GOALS_FLOORS:
		return (row - other) / bench_report_p50(bench, "floor", 0);
	case BENCH_GOALS_US:
		return row / 1000;
	case BENCH_GOALS_FIGURE:
	case BENCH_GOALS_LEAST:
		figure = bench_figure_find(bench, goal->row, goal->live);
		return figure ? figure->value : NAN;
	}
	return NAN;
}

bool bench_goals_is_minimum(const struct bench_goal *goal)
{
	return goal->kind == BENCH_GOALS_TIMES || goal->kind == BENCH_GOALS_LEAST;
}

enum bench_goals_verdict bench_goals_judge(const struct bench_goal *goal, double value)
{
	bool is_minimum = bench_goals_is_minimum(goal);

	if (isnan(value))
		return BENCH_GOALS_UNKNOWN;
	if (is_minimum ? value >= goal->aim : value <= goal->aim)
		return BENCH_GOALS_AIM;
	if (is_minimum ? value >= goal->must : value <= goal->must)
		return BENCH_GOALS_MUST;
	return BENCH_GOALS_MISSED;
}

enum bench_goals_verdict bench_goals_row(struct bench *bench, const char *row, uint64_t live)
{
	enum bench_goals_verdict worst = BENCH_GOALS_UNKNOWN;

	for (size_t i = 0; i < bench_goals_count; i++) {
		const struct bench_goal *goal = &bench_goals[i];
		enum bench_goals_verdict verdict;

		if (strcmp(goal->row, row) != 0 || goal->live != live)
			continue;
		verdict = bench_goals_judge(goal, bench_goals_value(bench, goal));
		if (verdict > worst)
			worst = verdict;
	}
	return worst;
}

const char *bench_goals_word(uint32_t verdict)
{
	static const char *const words[] = {[BENCH_GOALS_AIM] = "aim",
					    [BENCH_GOALS_MUST] = "must",
					    [BENCH_GOALS_MISSED] = "missed"};

	return verdict < ARRAY_SIZE(words) ? words[verdict] : NULL;
}
