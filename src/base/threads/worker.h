/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A thread for work that would block a loop for too long: reading books and /proc, querying a
 * database, sending to a collector. Jobs run one after the other, in the order in which they were
 * put. A job with a done() is then finished in the loop's thread. A job belongs to one thread at a
 * time, so its members need no lock.
 *
 * Besides jobs, a worker can have a tick: a function that sets the time of its next call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct worker;

struct worker_job {
	void (*run)(struct worker_job *job);  /* in the worker's thread */
	void (*done)(struct worker_job *job); /* in the loop's; may free it. NULL: run() may */
	uint64_t arrived_ns;                  /* CLOCK_MONOTONIC, set by worker_put() */
	struct worker_job *next;              /* private to the worker */
};

/*
 * Called at the start, when due, and after each job and worker_poke(). Return: the time of the next
 * call, or CLOCK_NEVER.
 */
typedef uint64_t (*worker_tick)(void *context, uint64_t now_ns);

struct worker_config {
	const char *name;  /* of the thread, for display */
	struct loop *loop; /* where jobs are finished; NULL = no job has a done() */
	size_t jobs_max;   /* how many may wait; 0 = no limit */
	worker_tick tick;  /* NULL = none */
	void *context;     /* the tick's */
};

/* 0 or a negative errno. */
int worker_new(struct worker **ret_worker, const struct worker_config *config);

/*
 * In the loop's thread: accepts no more jobs and stops the tick; waiting jobs are run and finished.
 */
void worker_stop(struct worker *worker);
struct worker *worker_free(struct worker *worker); /* stops it */

/*
 * From any thread; never waits. False: the queue is full or the worker stopped; the caller keeps
 * the job.
 */
bool worker_put(struct worker *worker, struct worker_job *job);

/* Whether no job waits to be run. */
bool worker_is_idle(struct worker *worker);

/* Calls the tick soon. From any thread. */
void worker_poke(struct worker *worker);
