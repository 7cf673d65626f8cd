/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last minutes, for charts: two series, DRAM and L1, for each device and each process. They are
 * recorded by this program, so a chart begins when the program does, or with what the daemon knows
 * of the time before. Times are CLOCK_MONOTONIC.
 */

#include <stddef.h>
#include <stdint.h>

#define SERIES_SECONDS 300u      /* the longest chart */
#define SERIES_MAX 4096u         /* devices and processes; any more have no chart */
#define SERIES_SAMPLES_MAX 4096u /* of one, 13 per second; with more, the oldest go earlier */
#define SERIES_LINES 2u

enum series_line {
	SERIES_DRAM = 0,
	SERIES_L1 = 1,
};

/* Owner of a series: a device by its unique id or its number, a process by its pid and start. */
struct series_key {
	uint64_t high, low;
};

struct series_sample {
	uint64_t time_ns;
	uint64_t values[SERIES_LINES];
};

struct series;

struct series_set {
	struct series **all; /* sorted by key */
	size_t count, capacity;
};

#define SERIES_SET_NULL     \
	(struct series_set) \
	{                   \
		0           \
	}

void series_set_deinit(struct series_set *set);

/* Adds a sample, later than the last one of its key. 0, -ENOMEM, or -ENOSPC for one too many. */
int series_add(struct series_set *set, const struct series_key *key,
	       const struct series_sample *sample);

/* Removes series that have ended: no sample since @before_ns. */
void series_forget(struct series_set *set, uint64_t before_ns);

/* NULL = there is none. */
const struct series *series_find(const struct series_set *set, const struct series_key *key);

/*
 * The series as @count points between two times. A point is the largest value in its interval, or
 * the last one before; before the first sample, and long after the last one, it is CHART_NOTHING.
 * @series may be NULL.
 */
void series_plot(const struct series *series, enum series_line line, uint64_t from_ns,
		 uint64_t until_ns, uint64_t *ret_points, size_t count);
