/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A thread for what takes longer than a loop may be held: reading books and /proc, asking a database,
 * sending to a collector. Jobs are run one after the other, in the order in which they were put. A job
 * with a done() is then finished in the loop's thread. A job belongs to whoever has it at the time, so
 * none of its members needs a lock.
 *
 * Beside jobs a worker can have a tick: something to be done at a time that it names itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct worker;

struct worker_job {
	void (*run)(struct worker_job *job); /* in the worker's thread */
	void (*done)(struct worker_job
			     *job); /* then in the loop's; may free the job. NULL: run() may. */
	uint64_t arrived_ns;        /* CLOCK_MONOTONIC, set by worker_put() */
	struct worker_job *next;    /* the worker's */
};

/* Called at once, then when it is due, and after each job and worker_poke(). Return: when next, or CLOCK_NEVER. */
typedef uint64_t (*worker_tick)(void *context, uint64_t now_ns);

struct worker_config {
	const char *name;  /* of the thread, for people */
	struct loop *loop; /* where jobs are finished; NULL = no job has a done() */
	size_t jobs_max;   /* how many may wait; 0 = any number */
	worker_tick tick;  /* NULL = none */
	void *context;     /* the tick's */
};

/* 0 or a negative errno. */
int worker_new(struct worker **ret_worker, const struct worker_config *config);

/* From the loop's thread: no more jobs and ticks from now on; those jobs that wait are run and finished. */
void worker_stop(struct worker *worker);
struct worker *worker_free(struct worker *worker); /* stops it */

/* From any thread; never waits. False: too many wait, or it has stopped; the job is still the caller's. */
bool worker_put(struct worker *worker, struct worker_job *job);

/* Whether no job waits to be run. */
bool worker_is_idle(struct worker *worker);

/* Something has happened that the tick should look at. From any thread. */
void worker_poke(struct worker *worker);
