/* SPDX-License-Identifier: Apache-2.0 */

/* Two queues under one lock: jobs to run, and jobs to finish in the loop. */

#include "base/threads/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/loop.h"
#include "base/threads/pthreads.h"

struct worker_list {
	struct worker_job *first;
	struct worker_job **last; /* where to link the next one */
};

struct worker {
	struct worker_config config; /* without the name */
	struct loop_source wake;     /* an eventfd: there are jobs to finish */
	pthread_t thread;
	bool is_joined;

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t more;
	struct worker_list waiting, ran;
	size_t count; /* of waiting jobs */
	bool is_poked;
	bool is_stopped;
};

static void worker_list_add(struct worker_list *list, struct worker_job *job)
{
	job->next = NULL;
	*list->last = job;
	list->last = &job->next;
}

static struct worker_job *worker_list_take(struct worker_list *list)
{
	struct worker_job *job = list->first;

	if (!job)
		return NULL;
	list->first = job->next;
	if (!list->first)
		list->last = &list->first;
	return job;
}

static void worker_run(struct worker *worker, struct worker_job *job)
{
	static const uint64_t one = 1;
	bool is_finished_later = job->done; /* read now: without it, run() may free the job */

	job->run(job);
	if (!is_finished_later)
		return;
	pthread_mutex_lock(&worker->lock);
	worker_list_add(&worker->ran, job);
	pthread_mutex_unlock(&worker->lock);
	(void)!write(worker->wake.fd, &one, sizeof(one)); /* cannot fail before 2^64 jobs */
}

static void *worker_main(void *context)
{
	struct worker *worker = context;
	worker_tick tick = worker->config.tick;
	uint64_t due_ns = tick ? 0 : CLOCK_NEVER;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		struct worker_job *job = worker_list_take(&worker->waiting);
		bool is_stopped = worker->is_stopped;

		if (!job && is_stopped)
			break;
		if (!job && !worker->is_poked && clock_ns(CLOCK_MONOTONIC) < due_ns) {
			(void)pthreads_wait(&worker->more, &worker->lock, due_ns); /* rechecked */
			continue;
		}
		worker->count -= job != NULL;
		worker->is_poked = false;
		pthread_mutex_unlock(&worker->lock);
		if (job)
			worker_run(worker, job);
		if (tick && !is_stopped)
			due_ns = tick(worker->config.context, clock_ns(CLOCK_MONOTONIC));
		pthread_mutex_lock(&worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static void worker_finish(struct worker *worker)
{
	for (;;) {
		struct worker_job *job;

		pthread_mutex_lock(&worker->lock);
		job = worker_list_take(&worker->ran);
		pthread_mutex_unlock(&worker->lock);
		if (!job)
			return;
		job->done(job);
	}
}

static void worker_ready(struct loop_source *source, uint32_t events)
{
	struct worker *worker = container_of(source, struct worker, wake);
	uint64_t count;

	(void)!read(source->fd, &count, sizeof(count)); /* only resets it */
	worker_finish(worker);
}

static int worker_watch(struct worker *worker, struct loop *loop)
{
	int r;

	worker->wake.ready = worker_ready;
	worker->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake.fd < 0)
		return -errno;
	r = loop_add(loop, &worker->wake, EPOLLIN);
	if (r < 0)
		(void)close(worker->wake.fd); /* nothing was written to it */
	return r;
}

static void worker_unwatch(struct worker *worker)
{
	if (!worker->config.loop)
		return;
	loop_remove(worker->config.loop, &worker->wake);
	(void)close(worker->wake.fd); /* only a counter */
}

int worker_new(struct worker **ret_worker, const struct worker_config *config)
{
	CLEANUP_FREE struct worker *worker = calloc(1, sizeof(*worker));
	int r;

	if (!worker)
		return -ENOMEM;
	worker->config = *config;
	worker->config.name = NULL;
	worker->wake = LOOP_SOURCE_NULL;
	worker->waiting.last = &worker->waiting.first;
	worker->ran.last = &worker->ran.first;
	pthreads_init(&worker->lock, &worker->more);
	r = config->loop ? worker_watch(worker, config->loop) : 0;
	if (r < 0)
		return r;
	r = pthreads_start(&worker->thread, config->name, worker_main, worker);
	if (r < 0) {
		worker_unwatch(worker);
		return r;
	}
	*ret_worker = cleanup_steal(worker);
	return 0;
}

void worker_stop(struct worker *worker)
{
	if (!worker || worker->is_joined)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->is_stopped = true;
	pthread_cond_signal(&worker->more);
	pthread_mutex_unlock(&worker->lock);
	(void)pthread_join(worker->thread, NULL); /* ours, and joined once */
	worker->is_joined = true;
	worker_finish(worker);
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	worker_stop(worker);
	worker_unwatch(worker);
	pthread_cond_destroy(&worker->more);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
	return NULL;
}

bool worker_put(struct worker *worker, struct worker_job *job)
{
	size_t most = worker->config.jobs_max;
	bool is_taken;

	pthread_mutex_lock(&worker->lock);
	is_taken = !worker->is_stopped && (most == 0 || worker->count < most);
	if (is_taken) {
		job->arrived_ns = clock_ns(CLOCK_MONOTONIC);
		worker_list_add(&worker->waiting, job);
		worker->count++;
		pthread_cond_signal(&worker->more);
	}
	pthread_mutex_unlock(&worker->lock);
	return is_taken;
}

bool worker_is_idle(struct worker *worker)
{
	bool is_idle;

	pthread_mutex_lock(&worker->lock);
	is_idle = worker->count == 0;
	pthread_mutex_unlock(&worker->lock);
	return is_idle;
}

void worker_poke(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->is_poked = true;
	pthread_cond_signal(&worker->more);
	pthread_mutex_unlock(&worker->lock);
}
