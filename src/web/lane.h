/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The workers of HTTP: a bounded number of jobs may wait, and none of them ends in a loop. */

#include "base/clock.h"
#include "base/worker.h"

#define LANE_NEVER CLOCK_NEVER
#define lane_job worker_job

struct lane;

static inline int lane_new(struct lane **ret_lane, const char *name, size_t jobs_max,
			   worker_tick tick, void *context)
{
	const struct worker_config config = {
		.name = name, .jobs_max = jobs_max, .tick = tick, .context = context};
	struct worker *worker;
	int r = worker_new(&worker, &config);

	if (r == 0)
		*ret_lane = (struct lane *)worker;
	return r;
}

static inline void lane_stop(struct lane *lane)
{
	worker_stop((struct worker *)lane);
}

static inline struct lane *lane_free(struct lane *lane)
{
	worker_free((struct worker *)lane);
	return NULL;
}

static inline bool lane_put(struct lane *lane, struct lane_job *job)
{
	return worker_put((struct worker *)lane, job);
}

static inline bool lane_is_idle(struct lane *lane)
{
	return worker_is_idle((struct worker *)lane);
}

static inline void lane_poke(struct lane *lane)
{
	worker_poke((struct worker *)lane);
}

static inline uint64_t lane_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
