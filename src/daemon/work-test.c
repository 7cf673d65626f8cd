/* SPDX-License-Identifier: Apache-2.0 */

/* The worker: jobs run in order in its thread, and are finished in order in the loop's. */

#include "daemon/work.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/loop.h"
#include "base/unit.h"

#define JOBS 1000u

struct job {
	struct work_job work;
	uint32_t number;
	pthread_t ran_by;
	sem_t *gate; /* run() waits for it */
};

static struct loop *loop;
static struct work *work;
static pthread_t home;
static uint32_t ran, done; /* ran: the worker's */

static void run(struct work_job *base)
{
	struct job *job = container_of(base, struct job, work);
	sigset_t blocked;

	if (job->gate)
		while (sem_wait(job->gate) != 0)
			;
	assert(job->number == ran);
	ran++;
	job->ran_by = pthread_self();
	/* Signals are the loop's. */
	assert(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
	assert(sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGHUP) == 1);
}

static void finish(struct work_job *base)
{
	struct job *job = container_of(base, struct job, work);

	assert(job->number == done);
	done++;
	assert(pthread_equal(pthread_self(), home) && !pthread_equal(job->ran_by, home));
	free(job);
}

static void put(uint32_t number, sem_t *gate)
{
	struct job *job = calloc(1, sizeof(*job));

	assert(job);
	job->work = (struct work_job){.run = run, .done = finish};
	job->number = number;
	job->gate = gate;
	work_put(work, &job->work);
}

static void begin(void)
{
	home = pthread_self();
	assert(loop_new(&loop) == 0);
	assert(work_new(&work, loop, "a name that is longer than a thread's may be") == 0);
}

static void end(void)
{
	work = work_free(work);
	loop = loop_free(loop);
}

UNIT(jobs_run_in_order_and_in_their_threads)
{
	begin();
	for (uint32_t i = 0; i < JOBS; i++) {
		put(i, NULL);
		if (i % 7 == 0)
			assert(loop_turn(loop, 0) >= 0);
	}
	while (done < JOBS)
		assert(loop_turn(loop, -1) >= 0);
	end();
	assert(ran == JOBS && done == JOBS);
}

UNIT(queued_jobs_are_done_before_the_end)
{
	sem_t gate;

	assert(sem_init(&gate, 0, 0) == 0);
	begin();
	for (uint32_t i = 0; i < JOBS; i++)
		put(i, i == 0 ? &gate : NULL);
	assert(loop_turn(loop, 0) >= 0);
	assert(done == 0); /* the first one still waits, and so do the others */
	assert(sem_post(&gate) == 0);
	end();
	assert(ran == JOBS && done == JOBS);
	assert(sem_destroy(&gate) == 0);
}

/* Finishing one job starts the next. */
static void finish_and_go_on(struct work_job *base)
{
	struct job *job = container_of(base, struct job, work);

	done++;
	if (done < 100) {
		job->number++;
		work_put(work, base);
	} else {
		free(job);
	}
}

UNIT(one_job_starts_the_next)
{
	struct job *job = calloc(1, sizeof(*job));

	begin();
	assert(job);
	job->work = (struct work_job){.run = run, .done = finish_and_go_on};
	work_put(work, &job->work);
	while (done < 100)
		assert(loop_turn(loop, -1) >= 0);
	end();
	assert(ran == 100);
}

UNIT(a_worker_without_jobs_ends)
{
	begin();
	end();
	assert(!work_free(NULL));
}
