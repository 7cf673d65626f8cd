/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Once a second: the totals of all processes, and a search for incidents in those books whose
 * counters say that there may be some. And once for every process that has ended: what it left, in
 * its book or, if it had none, in tt-metal's regions. recorder-overlaps.c compares the buffers of
 * processes that share a device.
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
#include "model/types.h"
#include "store/store.h"

#define RECORDER_LOOK_ALL 16u /* passes: then every book with incidents is looked into */

void recorder_add_news(struct recorder *recorder, uint32_t kind, uint64_t count,
		       struct notice *notice)
{
	pthread_mutex_lock(&recorder->lock);
	if (kind < TYPES_INCIDENTS)
		recorder->incidents[kind] += count;
	/* If out of memory for the notice, the store still has the incident. */
	if (notice) {
		notice->next = recorder->notice;
		recorder->notice = notice;
	}
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_tell(struct recorder *recorder)
{
	struct notice *latest, *in_order = NULL;

	pthread_mutex_lock(&recorder->lock);
	latest = recorder->notice;
	recorder->notice = NULL;
	pthread_mutex_unlock(&recorder->lock);
	while (latest) {
		struct notice *next = latest->next;

		latest->next = in_order;
		in_order = latest;
		latest = next;
	}
	for (const struct notice *notice = in_order; notice; notice = notice->next)
		recorder->config.told(recorder->config.context, notice);
	notice_free(in_order);
}

/* A number that changes whenever the book's owner counts an incident. */
static uint64_t recorder_signature(const struct snapshot_process *process,
				   const struct book_header *header)
{
	uint64_t sum = process->stray_frees, entries = 0;

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
static void recorder_visit(struct recorder *recorder, struct tracked *tracked, struct view *view,
			   const struct snapshot_process *process, bool look)
{
	uint64_t signature;

	pthread_mutex_lock(&tracked->book_lock);
	signature = recorder_signature(process, &tracked->book->reader.header);
	pthread_mutex_unlock(&tracked->book_lock);
	pthread_mutex_lock(&tracked->incident_lock);
	if (signature != tracked->signature || (look && signature > 0)) {
		tracked->signature = signature;
		recorder_look_into(recorder, tracked, view);
	}
	pthread_mutex_unlock(&tracked->incident_lock);
}

static void recorder_visit_all(struct recorder *recorder, const struct snapshot *snapshot,
			       bool look, bool sample)
{
	struct book_list *book_list = registry_books(recorder->config.registry);
	struct view *view = calloc(1, sizeof(*view));
	size_t hint = 0;

	for (size_t i = 0; view && i < book_list->count; i++) {
		const struct snapshot_process *process =
			tracked_process(book_list->list[i], snapshot, &hint);

		/* Books newer than the snapshot are visited the next time. */
		if (process)
			recorder_visit(recorder, book_list->list[i], view, process, look);
		if (process && sample)
			recorder_peaks_look(recorder, book_list->list[i], view, process);
	}
	if (view)
		view_deinit(view);
	free(view);
	book_list_unref(book_list);
}

static void recorder_pass(struct recorder *recorder, bool look, bool sample)
{
	struct snapshot *snapshot;

	if (collector_totals(recorder->config.collector, clock_ns(CLOCK_MONOTONIC), &snapshot) < 0)
		return; /* no memory; perhaps the next time */
	recorder_visit_all(recorder, snapshot, look, sample);
	if (sample) {
		region_watch_see(recorder->regions, snapshot);
		recorder_find_overlaps(recorder, snapshot);
		recorder_hour_put(recorder, snapshot);
		if (recorder->config.store)
			store_put_sample(recorder->config.store, snapshot);
	}
	snapshot_free(snapshot);
}

void recorder_look(struct recorder *recorder)
{
	recorder_pass(recorder, true, false);
}

static void recorder_sample_run(struct worker_job *job)
{
	struct recorder *recorder = container_of(job, struct recorder, sample);

	recorder_pass(recorder, recorder->passes % RECORDER_LOOK_ALL == 0, true);
}

static void recorder_sample_done(struct worker_job *job)
{
	struct recorder *recorder = container_of(job, struct recorder, sample);
	uint64_t now = loop_now(recorder->config.loop);

	region_watch_settle(recorder->regions);
	recorder_tell(recorder);
	/* On the full second, however long this took. If out of memory, there are no more samples. */
	(void)loop_set(recorder->config.loop, &recorder->timer,
		       bits_max(recorder->timer.due_ns + NS_PER_S, now));
}

static void recorder_timer(struct loop_timer *timer)
{
	struct recorder *recorder = container_of(timer, struct recorder, timer);

	recorder->passes++;
	(void)worker_put(recorder->config.work, &recorder->sample); /* the queue is unbounded */
}

/* A process has ended that left only its row in a region. */
static void recorder_regions_run(struct worker_job *job)
{
	struct recorder *recorder = container_of(job, struct recorder, regions_job);
	struct snapshot *snapshot;

	if (collector_totals(recorder->config.collector, clock_ns(CLOCK_MONOTONIC), &snapshot) < 0)
		return; /* the next second's pass finds it */
	region_watch_see(recorder->regions, snapshot);
	snapshot_free(snapshot);
}

static void recorder_regions_timer(struct loop_timer *timer)
{
	struct recorder *recorder = container_of(timer, struct recorder, regions_timer);

	(void)worker_put(recorder->config.work, &recorder->regions_job); /* unbounded queue */
}

/*
 * Every search for ended processes reads all books, and processes may end all the time. So there is at
 * most one search in a tenth of a second, for all that have ended since.
 */
static void recorder_regions_wake(void *context)
{
	struct recorder *recorder = context;
	struct loop *loop = recorder->config.loop;

	/* The running job may have read before this exit: run it once more. */
	recorder->is_woken = recorder->is_waking;
	if (recorder->is_waking)
		return;
	recorder->is_waking = true;
	/* If out of memory for a timer, it is done at once. */
	if (loop_set(loop, &recorder->regions_timer,
		     bits_max(recorder->regions_after, loop_now(loop))) < 0)
		recorder_regions_timer(&recorder->regions_timer);
}

static void recorder_regions_done(struct worker_job *job)
{
	struct recorder *recorder = container_of(job, struct recorder, regions_job);

	region_watch_settle(recorder->regions);
	recorder_tell(recorder);
	recorder->regions_after = loop_now(recorder->config.loop) + RECORDER_REGIONS_REST_NS;
	recorder->is_waking = false;
	if (recorder->is_woken)
		recorder_regions_wake(recorder);
	recorder->is_woken = false;
}

static void recorder_regions_ended(void *context, const struct snapshot *left,
				   const struct ending *ending)
{
	struct recorder *recorder = context;

	pthread_mutex_lock(&recorder->lock);
	recorder->leaked++;
	pthread_mutex_unlock(&recorder->lock);
	recorder_count_leak(recorder, left);
	recorder_add_news(recorder, TYPES_LEAK, 1, notice_new_leak(left, 0, ending));
	if (!recorder->config.store)
		return;
	store_put_leak(recorder->config.store, left, 0, ending);
	store_put_ending(recorder->config.store, left, 0, ending);
}

struct recorder_task *recorder_task_new(struct recorder *recorder, struct tracked *tracked)
{
	struct recorder_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->recorder = recorder;
	task->tracked = tracked_ref(tracked);
	return task;
}

void recorder_task_done(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);

	recorder_tell(task->recorder);
	tracked_unref(task->tracked);
	free(task);
}

void recorder_add_book(struct recorder *recorder, const struct tracked *tracked)
{
	region_watch_leave_out(recorder->regions, tracked->process);
}

static void recorder_hurry_run(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);
	struct view *view = calloc(1, sizeof(*view));

	/* Before the book is read: what happens from now on needs another search. */
	__atomic_store_n(&task->tracked->is_hurried, false, __ATOMIC_RELEASE);
	/* Whoever judges it looks into it too, and nobody may need it after that. */
	if (!view || tracked_has_ended(task->tracked)) {
		free(view);
		return;
	}
	pthread_mutex_lock(&task->tracked->incident_lock);
	recorder_look_into(task->recorder, task->tracked, view);
	pthread_mutex_unlock(&task->tracked->incident_lock);
	view_deinit(view);
	free(view);
}

/* One pending search per book: a client that reports failures all the time would fill the queue. */
void recorder_hurry(struct recorder *recorder, struct tracked *tracked)
{
	struct recorder_task *task;

	if (__atomic_exchange_n(&tracked->is_hurried, true, __ATOMIC_ACQ_REL))
		return; /* the pending search sees this one too */
	task = recorder_task_new(recorder, tracked);
	if (!task) {
		__atomic_store_n(&tracked->is_hurried, false, __ATOMIC_RELEASE);
		return; /* the next second's pass finds it */
	}
	task->job = (struct worker_job){.run = recorder_hurry_run, .done = recorder_task_done};
	(void)worker_put(recorder->config.work, &task->job); /* the queue is unbounded */
}

int recorder_new_past(struct recorder **ret_past, const struct recorder_config *config)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	const struct region_watch_config regions = {
		.loop = config->loop,
		.proc = registry_proc(config->registry),
		.context = recorder,
		.wake = recorder_regions_wake,
		.namespaces = registry_namespaces(config->registry),
		.ended = recorder_regions_ended,
	};
	int r;

	if (!recorder)
		return -ENOMEM;
	recorder->exits = EXIT_QUEUE_NULL;
	recorder->failures =
		(struct quota_rate){.burst = 1, .per_second = NS_PER_S / RECORDER_FAILURE_REST};
	recorder->peaks = (struct quota_rate){.burst = RECORDER_PEAK_BURST_NS,
					      .per_second = NS_PER_S / RECORDER_PEAK_SHARE};
	recorder->all_peaks = (struct quota_rate){.burst = RECORDER_PEAK_BURST_NS,
						  .per_second = NS_PER_S / RECORDER_PEAK_ALL_SHARE};
	recorder->config = *config;
	recorder->timer.fire = recorder_timer;
	recorder->regions_timer.fire = recorder_regions_timer;
	recorder->since_ns = clock_ns(CLOCK_REALTIME);
	recorder->sample.run = recorder_sample_run;
	recorder->sample.done = recorder_sample_done;
	(void)pthread_mutex_init(&recorder->lock, NULL); /* cannot fail on Linux */
	recorder->regions_job =
		(struct worker_job){.run = recorder_regions_run, .done = recorder_regions_done};
	recorder->ended = calloc(1, sizeof(*recorder->ended));
	r = recorder->ended ? region_watch_new(&recorder->regions, &regions) : -ENOMEM;
	if (r == 0)
		r = loop_set(config->loop, &recorder->timer, loop_now(config->loop) + NS_PER_S);
	if (r < 0) {
		recorder_free_past(recorder);
		return r;
	}
	*ret_past = recorder;
	return 0;
}

struct recorder *recorder_free_past(struct recorder *recorder)
{
	if (!recorder)
		return NULL;
	loop_cancel(recorder->config.loop, &recorder->timer);
	loop_cancel(recorder->config.loop, &recorder->regions_timer);
	recorder_judge_close(recorder);
	notice_free(recorder->notice);
	free(recorder->ended);
	free(recorder->overlaps);
	recorder_peaks_free(recorder);
	region_watch_free(recorder->regions);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder);
	return NULL;
}

void recorder_incidents(struct recorder *recorder, uint64_t ret_counts[TYPES_INCIDENTS])
{
	pthread_mutex_lock(&recorder->lock);
	for (uint32_t kind = 0; kind < TYPES_INCIDENTS; kind++)
		ret_counts[kind] = recorder->incidents[kind];
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_tally(struct recorder *recorder, struct tally *ret_tally)
{
	pthread_mutex_lock(&recorder->lock);
	*ret_tally = *recorder->ended;
	pthread_mutex_unlock(&recorder->lock);
}

uint64_t recorder_leaked(struct recorder *recorder)
{
	uint64_t leaked;

	pthread_mutex_lock(&recorder->lock);
	leaked = recorder->leaked;
	pthread_mutex_unlock(&recorder->lock);
	return leaked;
}
