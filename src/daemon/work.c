/* SPDX-License-Identifier: Apache-2.0 */

/* Two lists under one lock: what waits to be run, and what waits to be finished in the loop. */

#include "daemon/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/loop.h"

struct work_list {
	struct work_job *first;
	struct work_job **last; /* where the next one is linked */
};

struct work {
	struct loop *loop;
	struct loop_source wake; /* an eventfd: something is to be finished */
	pthread_t thread;
	char name[16];

	pthread_mutex_t lock; /* for what is below */
	pthread_cond_t more;
	struct work_list waiting, ran;
	bool is_ending;
};

static void work_list_init(struct work_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void work_list_add(struct work_list *list, struct work_job *job)
{
	job->next = NULL;
	*list->last = job;
	list->last = &job->next;
}

static struct work_job *work_list_take(struct work_list *list)
{
	struct work_job *job = list->first;

	if (!job)
		return NULL;
	list->first = job->next;
	if (!list->first)
		list->last = &list->first;
	return job;
}

static struct work_job *work_next(struct work *work)
{
	struct work_job *job;

	pthread_mutex_lock(&work->lock);
	while (!work->waiting.first && !work->is_ending)
		pthread_cond_wait(&work->more, &work->lock);
	job = work_list_take(&work->waiting);
	pthread_mutex_unlock(&work->lock);
	return job;
}

static void *work_thread(void *context)
{
	static const uint64_t one = 1;
	struct work *work = context;
	struct work_job *job;

	(void)pthread_setname_np(pthread_self(), work->name); /* only for people */
	while ((job = work_next(work))) {
		job->run(job);
		pthread_mutex_lock(&work->lock);
		work_list_add(&work->ran, job);
		pthread_mutex_unlock(&work->lock);
		/* Cannot fail short of 2^64 jobs. */
		(void)!write(work->wake.fd, &one, sizeof(one));
	}
	return NULL;
}

static void work_finish(struct work *work)
{
	for (;;) {
		struct work_job *job;

		pthread_mutex_lock(&work->lock);
		job = work_list_take(&work->ran);
		pthread_mutex_unlock(&work->lock);
		if (!job)
			return;
		job->done(job);
	}
}

static void work_ready(struct loop_source *source, uint32_t events)
{
	struct work *work = container_of(source, struct work, wake);
	uint64_t count;

	(void)!read(source->fd, &count, sizeof(count)); /* merely resets it */
	work_finish(work);
}

int work_new(struct work **ret_work, struct loop *loop, const char *name)
{
	CLEANUP_FREE struct work *work = calloc(1, sizeof(*work));
	sigset_t all, before;
	int r;

	if (!work)
		return -ENOMEM;
	work->loop = loop;
	work->wake = LOOP_SOURCE_NULL;
	work->wake.ready = work_ready;
	(void)strncpy(work->name, name, sizeof(work->name) - 1);
	work_list_init(&work->waiting);
	work_list_init(&work->ran);
	(void)pthread_mutex_init(&work->lock, NULL); /* cannot fail on Linux; likewise the next */
	(void)pthread_cond_init(&work->more, NULL);
	work->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (work->wake.fd < 0)
		return -errno;
	r = loop_add(loop, &work->wake, EPOLLIN);
	if (r == 0) {
		/* Signals are the loop's. */
		sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		r = -pthread_create(&work->thread, NULL, work_thread, work);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (r < 0)
			loop_remove(loop, &work->wake);
	}
	if (r < 0) {
		(void)close(work->wake.fd); /* nothing was written to it */
		return r;
	}
	*ret_work = cleanup_steal(work);
	return 0;
}

struct work *work_free(struct work *work)
{
	if (!work)
		return NULL;
	pthread_mutex_lock(&work->lock);
	work->is_ending = true;
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->lock);
	(void)pthread_join(work->thread, NULL); /* ours, and joined once */
	work_finish(work);
	loop_remove(work->loop, &work->wake);
	(void)close(work->wake.fd); /* only a counter */
	pthread_cond_destroy(&work->more);
	pthread_mutex_destroy(&work->lock);
	free(work);
	return NULL;
}

void work_put(struct work *work, struct work_job *job)
{
	pthread_mutex_lock(&work->lock);
	work_list_add(&work->waiting, job);
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->lock);
}
