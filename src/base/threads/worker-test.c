/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs run in order in the worker's thread and are finished in order in the loop's; ticks are on
 * time.
 */

#include "base/threads/worker.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"

#define JOBS 1000u

struct job {
	struct worker_job base;
	uint32_t number;
	pthread_t ran_by;
	sem_t *gate; /* run() waits for it */
};

static struct loop *loop;
static struct worker *worker;
static pthread_t home;
static uint32_t ran, done; /* ran: owned by the worker */

static void run(struct worker_job *self)
{
	struct job *job = container_of(self, struct job, base);
	sigset_t blocked;

	if (job->gate)
		while (sem_wait(job->gate) != 0)
			;
	assert(job->number == ran);
	ran++;
	job->ran_by = pthread_self();
	/* Signals are left to the loop's thread. */
	assert(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
	assert(sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGHUP) == 1);
}

static void finish(struct worker_job *self)
{
	struct job *job = container_of(self, struct job, base);

	assert(job->number == done);
	done++;
	assert(pthread_equal(pthread_self(), home) && !pthread_equal(job->ran_by, home));
	free(job);
}

static void put(uint32_t number, sem_t *gate)
{
	struct job *job = calloc(1, sizeof(*job));

	assert(job);
	job->base = (struct worker_job){.run = run, .done = finish};
	job->number = number;
	job->gate = gate;
	assert(worker_put(worker, &job->base));
}

static void begin(void)
{
	struct worker_config config = {.name = "test"};

	home = pthread_self();
	assert(loop_new(&loop) == 0);
	config.loop = loop;
	assert(worker_new(&worker, &config) == 0);
}

static void end(void)
{
	worker = worker_free(worker);
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
static void finish_and_go_on(struct worker_job *self)
{
	struct job *job = container_of(self, struct job, base);

	done++;
	if (done < 100) {
		job->number++;
		assert(worker_put(worker, self));
	} else {
		free(job);
	}
}

UNIT(one_job_starts_the_next)
{
	struct job *job = calloc(1, sizeof(*job));

	begin();
	assert(job);
	job->base = (struct worker_job){.run = run, .done = finish_and_go_on};
	assert(worker_put(worker, &job->base));
	while (done < 100)
		assert(loop_turn(loop, -1) >= 0);
	end();
	assert(ran == 100);
}

UNIT(a_worker_without_jobs_ends)
{
	begin();
	end();
	assert(!worker_free(NULL));
}

/* Without a done(), a running job owns itself. */
static void run_and_free(struct worker_job *self)
{
	struct job *job = container_of(self, struct job, base);

	if (job->gate)
		while (sem_wait(job->gate) != 0)
			;
	ran++;
	free(job);
}

static struct job *make_alone(sem_t *gate)
{
	struct job *job = calloc(1, sizeof(*job));

	assert(job);
	job->base.run = run_and_free;
	job->gate = gate;
	return job;
}

UNIT(more_than_the_limit_are_refused)
{
	const struct worker_config config = {.name = "test", .jobs_max = 2};
	struct job *refused;
	sem_t gate;

	assert(sem_init(&gate, 0, 0) == 0 && worker_new(&worker, &config) == 0);
	assert(worker_put(worker, &make_alone(&gate)->base));
	while (!worker_is_idle(worker)) /* until it is being run */
		;
	assert(worker_put(worker, &make_alone(NULL)->base));
	assert(worker_put(worker, &make_alone(NULL)->base));
	refused = make_alone(NULL);
	assert(!worker_put(worker, &refused->base) && !worker_is_idle(worker));
	assert(sem_post(&gate) == 0);
	worker_stop(worker);
	assert(ran == 3);
	assert(!worker_put(worker, &refused->base)); /* it has stopped */
	free(refused);
	worker = worker_free(worker);
	assert(sem_destroy(&gate) == 0);
}

struct ticks {
	sem_t ticked;
	uint64_t next_ns; /* from one tick to the next; 0 = none follows */
	uint64_t due_ns;
};

static uint64_t count_tick(void *context, uint64_t now_ns)
{
	struct ticks *ticks = context;

	assert(now_ns >= ticks->due_ns);
	ticks->due_ns = ticks->next_ns ? now_ns + ticks->next_ns : 0;
	assert(sem_post(&ticks->ticked) == 0);
	return ticks->next_ns ? ticks->due_ns : CLOCK_NEVER;
}

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

UNIT(a_tick_comes_at_once_and_when_it_is_due)
{
	struct ticks ticks = {.next_ns = NS_PER_MS};
	const struct worker_config config = {.name = "test", .tick = count_tick, .context = &ticks};

	assert(sem_init(&ticks.ticked, 0, 0) == 0 && worker_new(&worker, &config) == 0);
	for (int i = 0; i < 5; i++)
		await(&ticks.ticked);
	worker = worker_free(worker);
}

UNIT(a_tick_comes_after_a_job_and_when_it_is_poked)
{
	struct ticks ticks = {.next_ns = 0};
	const struct worker_config config = {.name = "test", .tick = count_tick, .context = &ticks};
	int left;

	assert(sem_init(&ticks.ticked, 0, 0) == 0 && worker_new(&worker, &config) == 0);
	await(&ticks.ticked);
	worker_poke(worker);
	await(&ticks.ticked);
	assert(worker_put(worker, &make_alone(NULL)->base));
	await(&ticks.ticked);
	worker = worker_free(worker);
	assert(ran == 1 && sem_getvalue(&ticks.ticked, &left) == 0 && left == 0);
}
