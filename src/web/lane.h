/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A thread that does one thing after the other, so that the one that serves sockets never waits for a
 * book, a database or a clock. Beside jobs a lane can have a tick: something to be done at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_NEVER UINT64_MAX

struct lane;

struct lane_job {
	void (*run)(struct lane_job *job); /* may free it */
	uint64_t arrived_ns;               /* CLOCK_MONOTONIC, set by lane_put() */
	struct lane_job *next;             /* the lane's */
};

/* Called when it is due, and after each job and lane_poke(). Return: when next, or LANE_NEVER. */
typedef uint64_t (*lane_tick)(void *context, uint64_t now_ns);

/* @jobs_max: how many may wait. @tick may be NULL. 0 or a negative errno. */
int lane_new(struct lane **ret_lane, const char *name, size_t jobs_max, lane_tick tick,
	     void *context);

/* No more jobs from now on, and no ticks; those that wait are run. */
void lane_stop(struct lane *lane);
struct lane *lane_free(struct lane *lane);

/* False: too many wait, or it has stopped; the job is still the caller's. From any thread. */
bool lane_put(struct lane *lane, struct lane_job *job);

/* Whether nothing waits. */
bool lane_is_idle(struct lane *lane);

/* Something has happened that the tick should look at. From any thread. */
void lane_poke(struct lane *lane);

/* CLOCK_MONOTONIC. */
uint64_t lane_now(void);
