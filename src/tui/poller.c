/* SPDX-License-Identifier: Apache-2.0 */

/* The two reading threads. */

#include "tui/poller.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pthreads.h"
#include "model/group.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"

#define READER_DETAILS_NS (1000 * NS_PER_MS) /* they change too fast to be read anyway */
#define READER_ASIDE_NS (1000 * NS_PER_MS)   /* for totals while details are what is seen */
#define READER_USUAL 16u                     /* looks that make an average */
#define READER_END_NS (300 * NS_PER_MS)      /* who does not end by then is left */

struct reader_thread {
	struct reader *reader;
	struct reader_feed feed;
	pthread_t thread;
	bool started;
	void *(*run)(void *);
};

struct reader {
	uint64_t refresh_ns;
	struct filter devices;
	int fd; /* an eventfd */
	struct reader_thread totals_thread, details_thread;

	/* Protected by the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* stop or wish */
	bool stop;
	struct reader_wish wish;
	uint64_t keyword_number; /* counts its changes */
	struct reader_totals *totals;
	struct reader_details *details;
};

struct reader_totals *reader_totals_free(struct reader_totals *totals)
{
	if (totals)
		snapshot_free(totals->snapshot);
	free(totals);
	return NULL;
}

struct reader_details *reader_details_free(struct reader_details *details)
{
	if (details) {
		snapshot_free(details->snapshot);
		free(details->groups);
		past_free(details->past);
	}
	free(details);
	return NULL;
}

bool reader_same_wish(const struct reader_wish *a, const struct reader_wish *b)
{
	return a->kind == b->kind && a->pid == b->pid && a->limit == b->limit &&
	       a->order == b->order;
}

/* The lock is held. Waits until then, until told to stop, or until the wish is not @number. */
static void reader_wait(struct reader *reader, uint64_t until_ns, uint64_t number)
{
	while (!reader->stop && reader->keyword_number == number &&
	       clock_ns(CLOCK_MONOTONIC) < until_ns)
		(void)pthreads_wait(&reader->changed, &reader->lock,
				    until_ns); /* the loop looks why it ended */
}

/* How long to wait after work that began at @begin; @share_ns: CPU time used, times the share. */
static uint64_t reader_pause(uint64_t begin, uint64_t refresh_ns, uint64_t share_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), passed = now - begin;
	uint64_t pause = refresh_ns > passed ? refresh_ns - passed : 0;

	return bits_max(pause, share_ns > passed ? share_ns - passed : 0);
}

static void reader_tell(struct reader *reader)
{
	uint64_t one = 1;
	ssize_t n = write(reader->fd, &one, sizeof(one));

	(void)n; /* fails only if the counter is already full */
}

static struct reader_totals *reader_read_totals(struct reader_thread *self)
{
	static const struct snapshot_request request = {.buffers = false};
	struct reader_totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return NULL;
	totals->error = self->feed.take(self->feed.context, &request, false, &totals->snapshot);
	totals->daemon =
		self->feed.daemon(self->feed.context, totals->reason, sizeof(totals->reason));
	totals->time_ns = clock_ns(CLOCK_MONOTONIC);
	return totals;
}

/* The charts are not visible while details are on the screen. */
static uint64_t reader_refresh(const struct reader *reader)
{
	return reader->wish.kind == READER_NOTHING ? reader->refresh_ns
						   : bits_max(reader->refresh_ns, READER_ASIDE_NS);
}

static void *reader_run_totals(void *context)
{
	struct reader_thread *self = context;
	struct reader *reader = self->reader;
	uint64_t usual = 0; /* average cost of one reading: now and then it includes a search */
	uint64_t looks = 0;

	pthread_mutex_lock(&reader->lock);
	while (!reader->stop) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC);
		uint64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID), pause;
		struct reader_totals *totals;

		pthread_mutex_unlock(&reader->lock);
		totals = reader_read_totals(self);
		pthread_mutex_lock(&reader->lock);
		used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
		/* The first reading opens every book, so it says nothing about the others. */
		if (looks++ > 0)
			usual = looks > 2 ? (usual * (READER_USUAL - 1) + used) / READER_USUAL
					  : used;
		pause = reader_pause(begin, reader_refresh(reader), usual * READER_SHARE);
		if (totals) {
			totals->pause_ns = pause;
			reader_totals_free(reader->totals);
			reader->totals = totals;
			reader_tell(reader);
		}
		pause += clock_ns(CLOCK_MONOTONIC);
		while (!reader->stop && clock_ns(CLOCK_MONOTONIC) < pause)
			reader_wait(reader, pause, reader->keyword_number);
	}
	pthread_mutex_unlock(&reader->lock);
	self->feed.free(self->feed.context);
	return NULL;
}

static int reader_read_past(struct reader_thread *self, struct reader_details *details)
{
	struct snapshot_request request = {.incidents = true, .filter = self->reader->devices};
	int r;

	details->past = past_new();
	if (!details->past)
		return -ENOMEM;
	r = self->feed.recall(self->feed.context, details->past);
	details->from_daemon = r == 0;
	if (r <= 0)
		return r;
	r = self->feed.take(self->feed.context, &request, true, &details->snapshot);
	return r < 0 ? r : past_from_snapshot(details->past, details->snapshot);
}

static int reader_read_rows(struct reader_thread *self, struct reader_details *details)
{
	const struct reader_wish *wish = &details->wish;
	bool sites = wish->kind == READER_SITES;
	struct snapshot_request request = {
		.buffers = true,
		.filter = self->reader->devices,
		.limit = sites ? 0 : wish->limit,
		.sorted = !sites && wish->limit,
		.order = wish->order,
	};
	int r;

	if (!sites) {
		request.filter.has_pid = true;
		request.filter.pid = wish->pid;
	}
	r = self->feed.take(self->feed.context, &request, true, &details->snapshot);
	if (r == 0 && sites)
		r = group_buffers(details->snapshot, GROUP_SITE, true, &details->groups,
				  &details->group_count);
	return r;
}

static struct reader_details *reader_read_details(struct reader_thread *self,
						  const struct reader_wish *wish)
{
	struct reader_details *details = calloc(1, sizeof(*details));

	if (!details)
		return NULL;
	details->wish = *wish;
	details->error = wish->kind == READER_PAST ? reader_read_past(self, details)
						   : reader_read_rows(self, details);
	return details;
}

/* The lock is held; it is released while reading. */
static void reader_work_details(struct reader_thread *self, uint64_t number)
{
	struct reader *reader = self->reader;
	struct reader_wish wish = reader->wish;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_THREAD_CPUTIME_ID), pause;
	struct reader_details *details;

	pthread_mutex_unlock(&reader->lock);
	details = reader_read_details(self, &wish);
	pthread_mutex_lock(&reader->lock);
	pause = reader_pause(begin, bits_max(reader->refresh_ns, READER_DETAILS_NS),
			     (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used) * READER_DETAILS_SHARE);
	if (details && reader->keyword_number == number) {
		details->pause_ns = pause;
		reader_details_free(reader->details);
		reader->details = cleanup_steal(details);
		reader_tell(reader);
	}
	reader_details_free(details); /* no longer wanted */
	reader_wait(reader, clock_ns(CLOCK_MONOTONIC) + pause, number);
}

static void *reader_run_details(void *context)
{
	struct reader_thread *self = context;
	struct reader *reader = self->reader;

	pthread_mutex_lock(&reader->lock);
	while (!reader->stop) {
		if (reader->wish.kind == READER_NOTHING)
			reader_wait(reader, UINT64_MAX, reader->keyword_number);
		else
			reader_work_details(self, reader->keyword_number);
	}
	pthread_mutex_unlock(&reader->lock);
	self->feed.free(self->feed.context);
	return NULL;
}

static int reader_start(struct reader_thread *thread)
{
	int r = pthreads_start(&thread->thread, NULL, thread->run, thread);

	thread->started = r == 0;
	return r;
}

int reader_new(struct reader **ret_reader, uint32_t refresh_ms, const struct filter *devices,
	       const struct reader_feed feeds[2])
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader) {
		feeds[0].free(feeds[0].context);
		feeds[1].free(feeds[1].context);
		return -ENOMEM;
	}
	reader->refresh_ns = refresh_ms * NS_PER_MS;
	reader->devices = *devices;
	reader->totals_thread = (struct reader_thread){
		.reader = reader, .feed = feeds[0], .run = reader_run_totals};
	reader->details_thread = (struct reader_thread){
		.reader = reader, .feed = feeds[1], .run = reader_run_details};
	pthreads_init(&reader->lock, &reader->changed);
	reader->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = reader->fd < 0 ? -errno : reader_start(&reader->totals_thread);
	if (r == 0)
		r = reader_start(&reader->details_thread);
	if (r < 0) {
		reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

/* Whether the thread, and what it owned, is gone. */
static bool reader_end(struct reader_thread *thread)
{
	if (!thread->started) {
		thread->feed.free(thread->feed.context);
		return true;
	}
	return pthreads_join(thread->thread, clock_ns(CLOCK_MONOTONIC) + READER_END_NS);
}

struct reader *reader_free(struct reader *reader)
{
	bool first, second;

	if (!reader)
		return NULL;
	pthread_mutex_lock(&reader->lock);
	reader->stop = true;
	pthread_cond_broadcast(&reader->changed);
	pthread_mutex_unlock(&reader->lock);
	first = reader_end(&reader->totals_thread);
	second = reader_end(&reader->details_thread);
	if (!first || !second)
		return NULL; /* a thread still uses it */
	reader_totals_free(reader->totals);
	reader_details_free(reader->details);
	if (reader->fd >= 0)
		(void)close(reader->fd); /* nothing is lost */
	pthread_cond_destroy(&reader->changed);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
	return NULL;
}

int reader_fd(const struct reader *reader)
{
	return reader->fd;
}

struct reader_totals *reader_take_totals(struct reader *reader)
{
	struct reader_totals *totals;
	uint64_t told;
	ssize_t n = read(reader->fd, &told, sizeof(told));

	(void)n; /* if it fails there is nothing new, as seen below */
	pthread_mutex_lock(&reader->lock);
	totals = cleanup_steal(reader->totals);
	pthread_mutex_unlock(&reader->lock);
	return totals;
}

struct reader_details *reader_take_details(struct reader *reader)
{
	struct reader_details *details;

	pthread_mutex_lock(&reader->lock);
	details = cleanup_steal(reader->details);
	pthread_mutex_unlock(&reader->lock);
	return details;
}

void reader_wish(struct reader *reader, const struct reader_wish *wish)
{
	pthread_mutex_lock(&reader->lock);
	if (!reader_same_wish(&reader->wish, wish)) {
		reader->wish = *wish;
		reader->keyword_number++;
		pthread_cond_broadcast(&reader->changed);
	}
	pthread_mutex_unlock(&reader->lock);
}
