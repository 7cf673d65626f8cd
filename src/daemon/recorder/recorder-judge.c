/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a process has left. The memory of its book counts for the process's cgroup until we let go of it, and
 * reading takes a while: one book is read at a time, and the users take turns.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "book/read/view.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/tracked.h"
#include "model/tally.h"
#include "model/types.h"
#include "store/store.h"

static void judge_next(struct recorder *recorder);

static void judge_report_leak(struct recorder *recorder, const struct tracked *tracked,
			      struct snapshot *snapshot, const struct ending *ending)
{
	struct notice *notice;

	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_SIZE);
	recorder_count_leak(recorder, snapshot);
	notice = notice_new_leak(snapshot, 0, ending);
	if (notice)
		notice->book = tracked->id;
	recorder_add_news(recorder, TYPES_LEAK, 1, notice);
	if (recorder->config.store)
		store_put_leak(recorder->config.store, snapshot, 0, ending);
}

static bool judge_is_closed(struct tracked *tracked)
{
	bool closed;

	pthread_mutex_lock(&tracked->book_lock);
	closed = tracked->book->reader.header.state == BOOK_STATE_CLOSED;
	pthread_mutex_unlock(&tracked->book_lock);
	return closed;
}

/* By a signal that is not how programs are ended in order. */
static bool judge_was_killed(const struct ending *ending)
{
	int number = ending_signal(ending);

	return number && number != SIGHUP && number != SIGINT && number != SIGTERM;
}

/* @is_read: with its buffers; otherwise only totals are known. Returns the bytes that it has left. */
static uint64_t judge_report(struct recorder *recorder, struct tracked *tracked,
			     struct snapshot *snapshot, bool is_read)
{
	struct ending ending = tracked->ending;
	uint64_t bytes, buffers;

	ending.book = tracked->id.inode;
	ending.ended_ns = snapshot->time_ns;
	ending.closed = judge_is_closed(tracked);
	recorder_join(recorder, snapshot);
	snapshot_drop_empty(snapshot);
	snapshot_process_totals(&snapshot->processes[0], &bytes, &buffers);
	if (is_read)
		buffers = snapshot->buffer_count;
	pthread_mutex_lock(&recorder->lock);
	tally_add_process(recorder->ended, snapshot, 0);
	recorder->leaked += buffers > 0;
	pthread_mutex_unlock(&recorder->lock);
	if (buffers > 0)
		judge_report_leak(recorder, tracked, snapshot, &ending);
	if (recorder->config.store)
		store_put_ending(recorder->config.store, snapshot, 0, &ending);
	return bytes;
}

/* Then there is no report either; it is counted. */
static void judge_without_memory(struct recorder *recorder, struct tracked *tracked)
{
	quota_count(QUOTA_EXITS_UNREAD, 1);
	recorder->config.judged(recorder->config.context, tracked, false);
	recorder_let_go(recorder, tracked);
}

static void judge_run(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);
	struct recorder *recorder = task->recorder;
	struct tracked *tracked = task->tracked;
	struct view *view = calloc(1, sizeof(*view));
	struct snapshot *snapshot;

	if (!view)
		return;
	/* Nobody else reads the book of an ended process, so this may take a while. */
	snapshot = recorder_read(tracked, true, view, recorder->config.symbols);
	pthread_mutex_lock(&tracked->incident_lock);
	recorder_look_into(recorder, tracked, view); /* what happened just before the end */
	pthread_mutex_unlock(&tracked->incident_lock);
	if (snapshot) {
		(void)judge_report(recorder, tracked, snapshot, true); /* its list says the same */
		if ((snapshot->buffer_count > 0 ||
		     (!judge_is_closed(tracked) && judge_was_killed(&tracked->ending))) &&
		    recorder->config.happened)
			recorder->config.happened(recorder->config.context, tracked, true);
	}
	snapshot_free(snapshot);
	recorder_peaks_judge(recorder, tracked, view);
	view_deinit(view);
	free(view);
}

static void judge_done(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);
	struct recorder *recorder = task->recorder;

	recorder->is_judging = false;
	recorder->config.judged(recorder->config.context, task->tracked, true);
	recorder_task_done(job);
	judge_next(recorder);
}

static void judge_next(struct recorder *recorder)
{
	struct tracked *tracked = recorder->is_judging ? NULL : exit_queue_take(&recorder->exits);
	struct recorder_task *task = tracked ? recorder_task_new(recorder, tracked) : NULL;

	if (!tracked)
		return;
	if (!task) {
		judge_without_memory(recorder, tracked);
		return;
	}
	task->job = (struct worker_job){.run = judge_run, .done = judge_done};
	recorder->is_judging = worker_put(recorder->config.work, &task->job);
	if (recorder->is_judging)
		return;
	tracked_unref(tracked); /* we are being closed: the next daemon judges it */
	free(task);
}

/* Only what can be read at once: no lists, no names. */
static void judge_totals_run(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);
	struct view *view = calloc(1, sizeof(*view));
	struct snapshot *snapshot = view ? recorder_read(task->tracked, false, view, NULL) : NULL;

	if (snapshot)
		task->left = judge_report(task->recorder, task->tracked, snapshot, false);
	snapshot_free(snapshot);
	if (view)
		view_deinit(view);
	free(view);
}

static void judge_totals_done(struct worker_job *job)
{
	struct recorder_task *task = container_of(job, struct recorder_task, job);
	struct recorder *recorder = task->recorder;

	quota_count(QUOTA_EXITS_UNREAD, 1);
	quota_count(QUOTA_EXITS_UNREAD_BYTES, task->left);
	recorder->config.judged(recorder->config.context, task->tracked, false);
	recorder_task_done(job);
}

static void judge_by_totals(struct recorder *recorder, struct tracked *tracked)
{
	const struct recorder_config *config = &recorder->config;
	struct recorder_task *task = recorder_task_new(recorder, tracked);

	if (!task) {
		judge_without_memory(recorder, tracked);
		return;
	}
	task->job = (struct worker_job){.run = judge_totals_run, .done = judge_totals_done};
	if (worker_put(config->totals ? config->totals : config->work, &task->job))
		return;
	tracked_unref(tracked);
	free(task);
}

void recorder_judge(struct recorder *recorder, struct tracked *tracked)
{
	struct exit_queue_book book = {.context = tracked, .user = tracked->maker};
	struct stat file;

	recorder_add_book(recorder, tracked); /* it may have been added long ago */
	if (fstat(tracked->book->file.fd, &file) == 0)
		book.bytes = (uint64_t)file.st_blocks * 512;
	if (!tracked->memory_path ||
	    !memory_cgroup_limited(tracked->memory_path, tracked->memory_is_v1, &book.group))
		book.group = (struct memory_cgroup){0};
	if (exit_queue_put(&recorder->exits, &book) < 0) {
		judge_by_totals(recorder, tracked);
		return;
	}
	tracked_ref(tracked);
	judge_next(recorder);
}

void recorder_let_go(struct recorder *recorder, const struct tracked *tracked)
{
	struct tracked *removed = exit_queue_remove(&recorder->exits, tracked);

	tracked_unref(removed);
}

void recorder_exits(const struct recorder *recorder, struct recorder_exits *ret_exits)
{
	*ret_exits = (struct recorder_exits){
		.books = recorder->exits.count,
		.bytes = recorder->exits.bytes.used,
	};
}

void recorder_judge_close(struct recorder *recorder)
{
	while (recorder->exits.count > 0)
		recorder_let_go(recorder, recorder->exits.items[0].book.context);
	exit_queue_deinit(&recorder->exits);
}
