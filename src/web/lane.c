/* SPDX-License-Identifier: Apache-2.0 */

/* A queue, a condition and a thread. */

#include "web/lane.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"

#define NS_PER_S UINT64_C(1000000000)

struct lane {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct lane_job *first, **last;
	size_t count, max;
	bool poked;
	bool stopped;
	bool joined;
	lane_tick tick;
	void *context;
};

uint64_t lane_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* With the lock held. */
static void lane_wait(struct lane *lane, uint64_t due)
{
	const struct timespec until = {
		.tv_sec = (time_t)(due / NS_PER_S),
		.tv_nsec = (long)(due % NS_PER_S),
	};

	if (due == LANE_NEVER)
		pthread_cond_wait(&lane->wake, &lane->lock);
	else
		(void)pthread_cond_timedwait(&lane->wake, &lane->lock, &until); /* or in time */
}

/* With the lock held. */
static struct lane_job *lane_take(struct lane *lane)
{
	struct lane_job *job = lane->first;

	if (!job)
		return NULL;
	lane->first = job->next;
	if (!lane->first)
		lane->last = &lane->first;
	lane->count--;
	return job;
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	uint64_t due = lane->tick ? 0 : LANE_NEVER;

	pthread_mutex_lock(&lane->lock);
	for (;;) {
		struct lane_job *job = lane_take(lane);
		bool stopped = lane->stopped;

		if (!job && stopped)
			break;
		if (!job && !lane->poked && lane_now() < due) {
			lane_wait(lane, due);
			continue;
		}
		lane->poked = false;
		pthread_mutex_unlock(&lane->lock);
		if (job)
			job->run(job);
		if (lane->tick && !stopped)
			due = lane->tick(lane->context, lane_now());
		pthread_mutex_lock(&lane->lock);
	}
	pthread_mutex_unlock(&lane->lock);
	return NULL;
}

/* Signals are the main thread's business. */
static int lane_start(struct lane *lane, const char *name)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&lane->thread, NULL, lane_main, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		(void)pthread_setname_np(lane->thread, name); /* for people only */
	return -r;
}

int lane_new(struct lane **ret_lane, const char *name, size_t jobs_max, lane_tick tick,
	     void *context)
{
	CLEANUP_FREE struct lane *lane = calloc(1, sizeof(*lane));
	pthread_condattr_t attributes;
	int r;

	if (!lane)
		return -ENOMEM;
	lane->last = &lane->first;
	lane->max = jobs_max;
	lane->tick = tick;
	lane->context = context;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	r = lane_start(lane, name);
	if (r < 0)
		return r;
	*ret_lane = cleanup_steal(lane);
	return 0;
}

void lane_stop(struct lane *lane)
{
	if (!lane || lane->joined)
		return;
	pthread_mutex_lock(&lane->lock);
	lane->stopped = true;
	pthread_cond_signal(&lane->wake);
	pthread_mutex_unlock(&lane->lock);
	pthread_join(lane->thread, NULL);
	lane->joined = true;
}

struct lane *lane_free(struct lane *lane)
{
	if (!lane)
		return NULL;
	lane_stop(lane);
	pthread_cond_destroy(&lane->wake);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
	return NULL;
}

bool lane_put(struct lane *lane, struct lane_job *job)
{
	bool taken;

	pthread_mutex_lock(&lane->lock);
	taken = !lane->stopped && lane->count < lane->max;
	if (taken) {
		job->arrived_ns = lane_now();
		job->next = NULL;
		*lane->last = job;
		lane->last = &job->next;
		lane->count++;
		pthread_cond_signal(&lane->wake);
	}
	pthread_mutex_unlock(&lane->lock);
	return taken;
}

bool lane_is_idle(struct lane *lane)
{
	bool idle;

	pthread_mutex_lock(&lane->lock);
	idle = lane->count == 0;
	pthread_mutex_unlock(&lane->lock);
	return idle;
}

void lane_poke(struct lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->poked = true;
	pthread_cond_signal(&lane->wake);
	pthread_mutex_unlock(&lane->lock);
}
