/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A thread for what takes longer than the loop may be held: reading books and /proc, asking the
 * database. The loop puts jobs in; each is run in the worker's thread, in order, and then finished in
 * the loop's. A job belongs to whoever runs it at the time, so none of its members needs a lock.
 */

struct loop;
struct work;

struct work_job {
	void (*run)(struct work_job *job);  /* in the worker's thread */
	void (*done)(struct work_job *job); /* then in the loop's; may free the job */
	struct work_job *next;              /* the queue's */
};

/* 0 or a negative errno. */
int work_new(struct work **ret_work, struct loop *loop, const char *name);

/* Runs what waits, finishes it, and ends. From the loop's thread. */
struct work *work_free(struct work *work);

/* From the loop's thread. Never fails, never waits. */
void work_put(struct work *work, struct work_job *job);
