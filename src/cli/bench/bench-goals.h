/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The goals for speed and size, as ratios between rows of one run. They are printed beside the
 * results and never decide the exit code: on a busy machine they mean little.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench;

enum bench_goals_kind {
	BENCH_GOALS_RATIO,  /* p50 of the row / p50 of the other */
	BENCH_GOALS_TIMES,  /* p50 of the other / p50 of the row: higher is better */
	BENCH_GOALS_TAIL,   /* p99 / p50 of the row */
	BENCH_GOALS_EXTRA,  /* p50 of the row - p50 of the other, in ns */
	BENCH_GOALS_SHARE,  /* the same, / getppid */
	BENCH_GOALS_FLOORS, /* the same, / floor */
	BENCH_GOALS_US,     /* p50 of the row, in us */
	BENCH_GOALS_FIGURE, /* a figure, as is */
	BENCH_GOALS_LEAST,  /* the same: higher is better */
};

struct bench_goal {
	const char *what;
	enum bench_goals_kind kind;
	const char *row; /* or figure */
	uint64_t live;
	const char *other;
	uint64_t other_live;
	double must;
	double aim; /* equal to must if there is no better goal */
};

/* From good to bad. */
enum bench_goals_verdict {
	BENCH_GOALS_UNKNOWN = 0, /* not measured */
	BENCH_GOALS_AIM,
	BENCH_GOALS_MUST,
	BENCH_GOALS_MISSED,
};

extern const struct bench_goal bench_goals[];
extern const size_t bench_goals_count;

/* Whether its row or figure was to be measured. */
bool bench_goals_is_wanted(struct bench *bench, const struct bench_goal *goal);

/* Whether higher is better. */
bool bench_goals_is_minimum(const struct bench_goal *goal);

double bench_goals_value(struct bench *bench, const struct bench_goal *goal);
enum bench_goals_verdict bench_goals_judge(const struct bench_goal *goal, double value);

/* The worst of a row's goals. */
enum bench_goals_verdict bench_goals_row(struct bench *bench, const char *row, uint64_t live);

/* "aim", "must", "missed"; NULL = not measured. */
const char *bench_goals_word(uint32_t verdict);
