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
#include "base/threads/pthreads.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"

#define POLLER_DETAILS_NS (1000 * NS_PER_MS) /* they change too fast to be read anyway */
#define POLLER_ASIDE_NS (1000 * NS_PER_MS)   /* for totals while details are what is seen */
#define POLLER_USUAL 16u                     /* looks that make an average */
#define POLLER_END_NS (300 * NS_PER_MS)      /* who does not end by then is left */

struct poller_thread {
	struct poller *poller;
	struct poller_feed feed;
	pthread_t thread;
	bool started;
	void *(*run)(void *);
};

struct poller {
	uint64_t refresh_ns;
	struct filter devices;
	int fd; /* an eventfd */
	struct poller_thread totals_thread, details_thread;

	/* Protected by the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* stop or wish */
	bool stop;
	struct poller_wish wish;
	uint64_t keyword_number; /* counts its changes */
	struct poller_totals *totals;
	struct poller_details *details;
};

struct poller_totals *poller_totals_free(struct poller_totals *totals)
{
	if (totals) {
		snapshot_free(totals->snapshot);
		series_set_deinit(&totals->before);
	}
	free(totals);
	return NULL;
}

struct poller_details *poller_details_free(struct poller_details *details)
{
	if (details) {
		snapshot_free(details->snapshot);
		group_list_deinit(&details->sites);
		site_rows_deinit(&details->lines);
		incident_rows_free(details->incident_rows);
	}
	free(details);
	return NULL;
}

bool poller_same_wish(const struct poller_wish *a, const struct poller_wish *b)
{
	return a->kind == b->kind && a->at_ns == b->at_ns && a->pid == b->pid &&
	       a->limit == b->limit && a->order == b->order;
}

/* The lock is held. Waits until then, until told to stop, or until the wish is not @number. */
static void poller_wait(struct poller *poller, uint64_t until_ns, uint64_t number)
{
	while (!poller->stop && poller->keyword_number == number &&
	       clock_ns(CLOCK_MONOTONIC) < until_ns)
		(void)pthreads_wait(&poller->changed, &poller->lock,
				    until_ns); /* the loop looks why it ended */
}

/* How long to wait after work that began at @begin; @share_ns: CPU time used, times the share. */
static uint64_t poller_pause(uint64_t begin, uint64_t refresh_ns, uint64_t share_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), passed = now - begin;
	uint64_t pause = refresh_ns > passed ? refresh_ns - passed : 0;

	return bits_max(pause, share_ns > passed ? share_ns - passed : 0);
}

static void poller_tell(struct poller *poller)
{
	uint64_t one = 1;
	ssize_t n = write(poller->fd, &one, sizeof(one));

	(void)n; /* fails only if the counter is already full */
}

static int poller_move(struct poller_thread *self, uint64_t at_ns)
{
	return at_ns && self->feed.move ? self->feed.move(self->feed.context, at_ns) : 0;
}

static struct poller_totals *poller_read_totals(struct poller_thread *self, uint64_t at_ns)
{
	static const struct snapshot_request request = {.buffers = false};
	struct poller_totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return NULL;
	totals->error = poller_move(self, at_ns);
	if (totals->error == 0)
		totals->error =
			self->feed.take(self->feed.context, &request, false, &totals->snapshot);
	totals->daemon =
		self->feed.daemon(self->feed.context, totals->reason, sizeof(totals->reason));
	totals->time_ns = clock_ns(CLOCK_MONOTONIC);
	return totals;
}

/* Charts begin with what the daemon has seen. Without it, or if it fails, they begin now. */
static void poller_read_charts(struct poller_thread *self, struct poller_totals *totals)
{
	if (totals && totals->snapshot && self->feed.chart &&
	    (totals->daemon == POLLER_DAEMON_HELPS || self->feed.move))
		(void)self->feed.chart(self->feed.context, totals->snapshot, totals->time_ns,
				       &totals->before);
}

/* The charts are not visible while details are on the screen. */
static uint64_t poller_refresh(const struct poller *poller)
{
	return poller->wish.kind == POLLER_NOTHING ? poller->refresh_ns
						   : bits_max(poller->refresh_ns, POLLER_ASIDE_NS);
}

static void *poller_run_totals(void *context)
{
	struct poller_thread *self = context;
	struct poller *poller = self->poller;
	uint64_t usual = 0; /* average cost of one reading: now and then it includes a search */
	uint64_t looks = 0;

	pthread_mutex_lock(&poller->lock);
	while (!poller->stop) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC);
		uint64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID), pause;
		uint64_t at_ns = poller->wish.at_ns;
		struct poller_totals *totals;

		pthread_mutex_unlock(&poller->lock);
		totals = poller_read_totals(self, at_ns);
		if (looks == 0 || at_ns)
			poller_read_charts(self, totals);
		pthread_mutex_lock(&poller->lock);
		used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
		/* The first reading opens every book, so it says nothing about the others. */
		if (looks++ > 0)
			usual = looks > 2 ? (usual * (POLLER_USUAL - 1) + used) / POLLER_USUAL
					  : used;
		pause = poller_pause(begin, poller_refresh(poller), usual * POLLER_SHARE);
		if (totals) {
			totals->pause_ns = pause;
			if (poller->totals && poller->totals->before.count &&
			    !totals->before.count) {
				totals->before = poller->totals->before;
				poller->totals->before = SERIES_SET_NULL;
			}
			poller_totals_free(poller->totals);
			poller->totals = totals;
			poller_tell(poller);
		}
		/* A moment of a recording stays as it is. */
		pause = at_ns ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC) + pause;
		while (!poller->stop && poller->wish.at_ns == at_ns &&
		       clock_ns(CLOCK_MONOTONIC) < pause)
			poller_wait(poller, pause, poller->keyword_number);
	}
	pthread_mutex_unlock(&poller->lock);
	self->feed.free(self->feed.context);
	return NULL;
}

static int poller_read_past(struct poller_thread *self, struct poller_details *details)
{
	struct snapshot_request request = {.incidents = true, .filter = self->poller->devices};
	int r;

	details->incident_rows = incident_rows_new();
	if (!details->incident_rows)
		return -ENOMEM;
	r = self->feed.recall(self->feed.context, details->incident_rows);
	details->from_daemon = r == 0;
	if (r <= 0)
		return r;
	r = self->feed.take(self->feed.context, &request, true, &details->snapshot);
	return r < 0 ? r : incident_rows_from_snapshot(details->incident_rows, details->snapshot);
}

int poller_details_group(struct poller_details *details)
{
	int r = group_buffers(details->snapshot, GROUP_SITE, true, &details->sites);

	for (size_t i = 0; r == 0 && i < details->sites.count; i++)
		site_rows_add_stack(&details->lines, details->sites.groups[i].stack);
	site_rows_finish(&details->lines);
	return r;
}

static int poller_read_rows(struct poller_thread *self, struct poller_details *details)
{
	const struct poller_wish *wish = &details->wish;
	bool sites = wish->kind == POLLER_SITES;
	struct snapshot_request request = {
		.buffers = true,
		.filter = self->poller->devices,
		.limit = sites ? 0 : wish->limit,
		.sorted = !sites && wish->limit,
		.order = wish->order,
	};
	int r;

	if (!sites)
		request.filter.pid = wish->pid;
	r = self->feed.take(self->feed.context, &request, true, &details->snapshot);
	if (r == 0 && sites)
		r = poller_details_group(details);
	return r;
}

static struct poller_details *poller_read_details(struct poller_thread *self,
						  const struct poller_wish *wish)
{
	struct poller_details *details = calloc(1, sizeof(*details));

	if (!details)
		return NULL;
	details->wish = *wish;
	details->error = poller_move(self, wish->at_ns);
	if (details->error == 0)
		details->error = wish->kind == POLLER_PAST ? poller_read_past(self, details)
							   : poller_read_rows(self, details);
	return details;
}

/* The lock is held; it is released while reading. */
static void poller_work_details(struct poller_thread *self, uint64_t number)
{
	struct poller *poller = self->poller;
	struct poller_wish wish = poller->wish;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_THREAD_CPUTIME_ID), pause;
	struct poller_details *details;

	pthread_mutex_unlock(&poller->lock);
	details = poller_read_details(self, &wish);
	pthread_mutex_lock(&poller->lock);
	pause = poller_pause(begin, bits_max(poller->refresh_ns, POLLER_DETAILS_NS),
			     (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used) * POLLER_DETAILS_SHARE);
	if (details && poller->keyword_number == number) {
		details->pause_ns = pause;
		poller_details_free(poller->details);
		poller->details = cleanup_steal(details);
		poller_tell(poller);
	}
	poller_details_free(details); /* no longer wanted */
	poller_wait(poller, wish.at_ns ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC) + pause, number);
}

static void *poller_run_details(void *context)
{
	struct poller_thread *self = context;
	struct poller *poller = self->poller;

	pthread_mutex_lock(&poller->lock);
	while (!poller->stop) {
		if (poller->wish.kind == POLLER_NOTHING)
			poller_wait(poller, UINT64_MAX, poller->keyword_number);
		else
			poller_work_details(self, poller->keyword_number);
	}
	pthread_mutex_unlock(&poller->lock);
	self->feed.free(self->feed.context);
	return NULL;
}

static int poller_start(struct poller_thread *thread)
{
	int r = pthreads_start(&thread->thread, NULL, thread->run, thread);

	thread->started = r == 0;
	return r;
}

int poller_new(struct poller **ret_reader, uint32_t refresh_ms, const struct filter *devices,
	       const struct poller_feed feeds[2])
{
	struct poller *poller = calloc(1, sizeof(*poller));
	int r;

	if (!poller) {
		feeds[0].free(feeds[0].context);
		feeds[1].free(feeds[1].context);
		return -ENOMEM;
	}
	poller->refresh_ns = refresh_ms * NS_PER_MS;
	poller->devices = *devices;
	poller->totals_thread = (struct poller_thread){
		.poller = poller, .feed = feeds[0], .run = poller_run_totals};
	poller->details_thread = (struct poller_thread){
		.poller = poller, .feed = feeds[1], .run = poller_run_details};
	pthreads_init(&poller->lock, &poller->changed);
	poller->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = poller->fd < 0 ? -errno : poller_start(&poller->totals_thread);
	if (r == 0)
		r = poller_start(&poller->details_thread);
	if (r < 0) {
		poller_free(poller);
		return r;
	}
	*ret_reader = poller;
	return 0;
}

/* Whether the thread, and what it owned, is gone. */
static bool poller_end(struct poller_thread *thread)
{
	if (!thread->started) {
		thread->feed.free(thread->feed.context);
		return true;
	}
	return pthreads_join(thread->thread, clock_ns(CLOCK_MONOTONIC) + POLLER_END_NS);
}

struct poller *poller_free(struct poller *poller)
{
	bool first, second;

	if (!poller)
		return NULL;
	pthread_mutex_lock(&poller->lock);
	poller->stop = true;
	pthread_cond_broadcast(&poller->changed);
	pthread_mutex_unlock(&poller->lock);
	first = poller_end(&poller->totals_thread);
	second = poller_end(&poller->details_thread);
	if (!first || !second)
		return NULL; /* a thread still uses it */
	poller_totals_free(poller->totals);
	poller_details_free(poller->details);
	if (poller->fd >= 0)
		(void)close(poller->fd); /* nothing is lost */
	pthread_cond_destroy(&poller->changed);
	pthread_mutex_destroy(&poller->lock);
	free(poller);
	return NULL;
}

int poller_fd(const struct poller *poller)
{
	return poller->fd;
}

struct poller_totals *poller_take_totals(struct poller *poller)
{
	struct poller_totals *totals;
	uint64_t told;
	ssize_t n = read(poller->fd, &told, sizeof(told));

	(void)n; /* if it fails there is nothing new, as seen below */
	pthread_mutex_lock(&poller->lock);
	totals = cleanup_steal(poller->totals);
	pthread_mutex_unlock(&poller->lock);
	return totals;
}

struct poller_details *poller_take_details(struct poller *poller)
{
	struct poller_details *details;

	pthread_mutex_lock(&poller->lock);
	details = cleanup_steal(poller->details);
	pthread_mutex_unlock(&poller->lock);
	return details;
}

void poller_wish(struct poller *poller, const struct poller_wish *wish)
{
	pthread_mutex_lock(&poller->lock);
	if (!poller_same_wish(&poller->wish, wish)) {
		poller->wish = *wish;
		poller->keyword_number++;
		pthread_cond_broadcast(&poller->changed);
	}
	pthread_mutex_unlock(&poller->lock);
}
