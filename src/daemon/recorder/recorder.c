/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Once a second: the totals of everybody, and a look for incidents into those books whose counters say
 * that there may be some. And once for every process that has ended: what it left, in its book or, if it
 * had none, in tt-metal's regions.
 */

#include "daemon/recorder/recorder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/recorder/region-watch.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "model/tally.h"
#include "store/store.h"

#define PAST_LOOK_ALL 16u /* passes: then every book with incidents is looked into */

/* A job about one book. */
struct past_task {
	struct worker_job job;
	struct past *past;
	struct tracked *tracked;
};

void past_add_news(struct past *past, enum past_kind kind, uint64_t count, struct news *news)
{
	pthread_mutex_lock(&past->lock);
	past->incidents[kind] += count;
	/* Without memory to tell it with: what was put into the store is there. */
	if (news) {
		news->next = past->news;
		past->news = news;
	}
	pthread_mutex_unlock(&past->lock);
}

void past_tell(struct past *past)
{
	struct news *latest, *in_order = NULL;

	pthread_mutex_lock(&past->lock);
	latest = past->news;
	past->news = NULL;
	pthread_mutex_unlock(&past->lock);
	while (latest) {
		struct news *next = latest->next;

		latest->next = in_order;
		in_order = latest;
		latest = next;
	}
	for (const struct news *news = in_order; news; news = news->next)
		past->config.told(past->config.context, news);
	news_free(in_order);
}

/* A number that changes whenever the book's owner counts an incident. */
static uint64_t past_signature(const struct snapshot_process *process,
			       const struct book_header *header)
{
	uint64_t sum = 0, entries = 0;

	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++)
		entries += header->incident_count[kind];
	if (entries == 0)
		return 0;
	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &process->parts[i].memory[type];

			sum += memory->unknown_frees + memory->double_frees + memory->size_changes;
		}
	}
	return sum + entries;
}

/* Looks into a book if its totals say that something has happened. */
static void past_visit(struct past *past, struct tracked *tracked, struct view *view,
		       const struct snapshot_process *process, bool look)
{
	uint64_t signature;

	pthread_mutex_lock(&tracked->lock);
	signature = past_signature(process, &tracked->book->reader.header);
	pthread_mutex_unlock(&tracked->lock);
	pthread_mutex_lock(&tracked->look);
	if (signature != tracked->signature || (look && signature > 0)) {
		tracked->signature = signature;
		past_look_into(past, tracked, view);
	}
	pthread_mutex_unlock(&tracked->look);
}

static void past_visit_all(struct past *past, const struct snapshot *snapshot, bool look)
{
	struct roster *roster = registry_roster(past->config.registry);
	struct view *view = calloc(1, sizeof(*view));
	size_t hint = 0;

	for (size_t i = 0; view && i < roster->count; i++) {
		const struct snapshot_process *process =
			tracked_process(roster->list[i], snapshot, &hint);

		/* What is younger than the snapshot is visited the next time. */
		if (process)
			past_visit(past, roster->list[i], view, process, look);
	}
	if (view)
		view_deinit(view);
	free(view);
	roster_unref(roster);
}

static void past_pass(struct past *past, bool look, bool sample)
{
	struct snapshot *snapshot;

	if (collector_totals(past->config.collector, clock_ns(CLOCK_MONOTONIC), &snapshot) < 0)
		return; /* no memory; perhaps the next time */
	past_visit_all(past, snapshot, look);
	if (sample) {
		region_watch_see(past->regions, snapshot);
		if (past->config.store)
			store_put_sample(past->config.store, snapshot);
	}
	snapshot_free(snapshot);
}

void past_look(struct past *past)
{
	past_pass(past, true, false);
}

static void past_sample_run(struct worker_job *job)
{
	struct past *past = container_of(job, struct past, sample);

	past_pass(past, past->passes % PAST_LOOK_ALL == 0, true);
}

static void past_sample_done(struct worker_job *job)
{
	struct past *past = container_of(job, struct past, sample);
	uint64_t now = loop_now(past->config.loop);

	region_watch_settle(past->regions);
	past_tell(past);
	/* On the second, however long it took; without memory for a timer there are no more samples. */
	(void)loop_set(past->config.loop, &past->timer,
		       bits_max(past->timer.due_ns + NS_PER_S, now));
}

static void past_timer(struct loop_timer *timer)
{
	struct past *past = container_of(timer, struct past, timer);

	past->passes++;
	(void)worker_put(past->config.work, &past->sample); /* any number may wait */
}

/* Somebody has ended whose row in a region is all that it left. */
static void past_regions_run(struct worker_job *job)
{
	struct past *past = container_of(job, struct past, regions_job);
	struct snapshot *snapshot;

	if (collector_totals(past->config.collector, clock_ns(CLOCK_MONOTONIC), &snapshot) < 0)
		return; /* the next second's pass finds it */
	region_watch_see(past->regions, snapshot);
	snapshot_free(snapshot);
}

static void past_regions_done(struct worker_job *job)
{
	struct past *past = container_of(job, struct past, regions_job);

	region_watch_settle(past->regions);
	past_tell(past);
	past->is_waking = past->is_woken;
	past->is_woken = false;
	if (past->is_waking)
		(void)worker_put(past->config.work, job); /* any number may wait */
}

static void past_regions_wake(void *context)
{
	struct past *past = context;

	/* Whoever is at it may have looked before: then once more. */
	past->is_woken = past->is_waking;
	if (past->is_waking)
		return;
	past->is_waking = true;
	(void)worker_put(past->config.work, &past->regions_job); /* any number may wait */
}

static void past_regions_ended(void *context, const struct snapshot *left)
{
	const struct store_ending ending = {.ended_ns = left->time_ns};
	const struct news_ending told = {.ended_ns = left->time_ns, .how = "died"};
	struct past *past = context;

	pthread_mutex_lock(&past->lock);
	past->leaked++;
	pthread_mutex_unlock(&past->lock);
	past_add_news(past, PAST_LEAK, 1, news_new_leak(left, 0, &told));
	if (past->config.store)
		store_put_leak(past->config.store, left, 0, &ending);
}

static struct past_task *past_task_new(struct past *past, struct tracked *tracked)
{
	struct past_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->past = past;
	task->tracked = tracked_ref(tracked);
	return task;
}

static void past_task_done(struct worker_job *job)
{
	struct past_task *task = container_of(job, struct past_task, job);

	past_tell(task->past);
	tracked_unref(task->tracked);
	free(task);
}

static void past_judge_done(struct worker_job *job)
{
	struct past_task *task = container_of(job, struct past_task, job);
	const struct past_config *config = &task->past->config;

	config->judged(config->context, task->tracked);
	past_task_done(job);
}

static void past_report_leak(struct past *past, struct tracked *tracked, struct snapshot *snapshot,
			     bool closed)
{
	uint32_t end = __atomic_load_n(&tracked->end, __ATOMIC_RELAXED);
	struct store_ending ending = {
		.book = tracked->inode,
		.ended_ns = snapshot->time_ns,
		.closed = closed,
		.execed = end == TRACKED_EXECED,
	};
	struct news_ending told = {
		.ended_ns = snapshot->time_ns,
		.how = end == TRACKED_EXECED ? "execed"
		       : closed              ? "closed"
					     : "died",
	};

	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_SIZE);
	past_add_news(past, PAST_LEAK, 1, news_new_leak(snapshot, 0, &told));
	if (past->config.store)
		store_put_leak(past->config.store, snapshot, 0, &ending);
}

static void past_judge_run(struct worker_job *job)
{
	struct past_task *task = container_of(job, struct past_task, job);
	struct past *past = task->past;
	struct tracked *tracked = task->tracked;
	struct view *view = calloc(1, sizeof(*view));
	struct snapshot *snapshot;
	bool closed;

	if (!view)
		return;
	/* Nobody else reads the book of an ended process: it may take a while. */
	snapshot = past_read(tracked, true, view, past->config.symbols);
	pthread_mutex_lock(&tracked->lock);
	closed = tracked->book->reader.header.state == BOOK_STATE_CLOSED;
	pthread_mutex_unlock(&tracked->lock);
	pthread_mutex_lock(&tracked->look);
	past_look_into(past, tracked, view); /* what happened just before the end */
	pthread_mutex_unlock(&tracked->look);
	if (snapshot) {
		snapshot_drop_empty(snapshot);
		pthread_mutex_lock(&past->lock);
		tally_add_process(past->ended, snapshot, 0);
		past->leaked += snapshot->buffer_count > 0;
		pthread_mutex_unlock(&past->lock);
		if (snapshot->buffer_count > 0)
			past_report_leak(past, tracked, snapshot, closed);
	}
	snapshot_free(snapshot);
	view_deinit(view);
	free(view);
}

void past_judge(struct past *past, struct tracked *tracked)
{
	struct past_task *task = past_task_new(past, tracked);

	if (!task)
		return; /* without memory there is no report either */
	task->job = (struct worker_job){.run = past_judge_run, .done = past_judge_done};
	(void)worker_put(past->config.work, &task->job); /* any number may wait */
}

static void past_hurry_run(struct worker_job *job)
{
	struct past_task *task = container_of(job, struct past_task, job);
	struct view *view = calloc(1, sizeof(*view));

	/* Before the book is read: what happens from now on is another look's. */
	__atomic_store_n(&task->tracked->is_hurried, false, __ATOMIC_RELEASE);
	if (!view)
		return;
	pthread_mutex_lock(&task->tracked->look);
	past_look_into(task->past, task->tracked, view);
	pthread_mutex_unlock(&task->tracked->look);
	view_deinit(view);
	free(view);
}

/* Of one book only one waits: whoever tells of failures all the time would fill the queue. */
void past_hurry(struct past *past, struct tracked *tracked)
{
	struct past_task *task;

	if (__atomic_exchange_n(&tracked->is_hurried, true, __ATOMIC_ACQ_REL))
		return; /* whoever looks then sees this as well */
	task = past_task_new(past, tracked);
	if (!task) {
		__atomic_store_n(&tracked->is_hurried, false, __ATOMIC_RELEASE);
		return; /* the next second's pass finds it */
	}
	task->job = (struct worker_job){.run = past_hurry_run, .done = past_task_done};
	(void)worker_put(past->config.work, &task->job); /* any number may wait */
}

int past_new(struct past **ret_past, const struct past_config *config)
{
	struct past *past = calloc(1, sizeof(*past));
	const struct region_watch_config regions = {
		.loop = config->loop,
		.proc = registry_proc(config->registry),
		.context = past,
		.wake = past_regions_wake,
		.ended = past_regions_ended,
	};
	int r;

	if (!past)
		return -ENOMEM;
	past->config = *config;
	past->timer.fire = past_timer;
	past->since_ns = clock_ns(CLOCK_REALTIME);
	past->sample.run = past_sample_run;
	past->sample.done = past_sample_done;
	(void)pthread_mutex_init(&past->lock, NULL); /* cannot fail on Linux */
	past->regions_job = (struct worker_job){.run = past_regions_run, .done = past_regions_done};
	past->ended = calloc(1, sizeof(*past->ended));
	r = past->ended ? region_watch_new(&past->regions, &regions) : -ENOMEM;
	if (r == 0)
		r = loop_set(config->loop, &past->timer, loop_now(config->loop) + NS_PER_S);
	if (r < 0) {
		past_free(past);
		return r;
	}
	*ret_past = past;
	return 0;
}

struct past *past_free(struct past *past)
{
	if (!past)
		return NULL;
	loop_cancel(past->config.loop, &past->timer);
	news_free(past->news);
	free(past->ended);
	region_watch_free(past->regions);
	pthread_mutex_destroy(&past->lock);
	free(past);
	return NULL;
}

void past_incidents(struct past *past, uint64_t ret_counts[PAST_KINDS])
{
	pthread_mutex_lock(&past->lock);
	for (uint32_t kind = 0; kind < PAST_KINDS; kind++)
		ret_counts[kind] = past->incidents[kind];
	pthread_mutex_unlock(&past->lock);
}

void past_tally(struct past *past, struct tally *ret_tally)
{
	pthread_mutex_lock(&past->lock);
	*ret_tally = *past->ended;
	pthread_mutex_unlock(&past->lock);
}

uint64_t past_leaked(struct past *past)
{
	uint64_t leaked;

	pthread_mutex_lock(&past->lock);
	leaked = past->leaked;
	pthread_mutex_unlock(&past->lock);
	return leaked;
}
