/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The report of remaining buffers with the history of each, which only the program for old clients has. A thread that
 * answers asks for it in the loop's thread, by a job of a worker that does nothing else, and waits.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/threads/worker.h"
#include "daemon/daemon.h"
#include "daemon/link/links.h"

#define REPORT_WAIT_S 5
#define REPORT_MAX (UINT64_C(256) << 20) /* bytes */

/* The thread that waits and the loop have it together; who is the last frees it. */
struct daemon_report {
	struct daemon_report *next; /* in the loop's list */
	struct daemon *daemon;
	struct worker_job job;
	uint64_t number;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool is_over, is_left; /* by the loop; by the thread */
	int outcome;
	FILE *stream; /* the loop's, until it is over */
	char *text;
	size_t length;
};

static void report_free(struct daemon_report *report)
{
	if (report->stream)
		(void)fclose(report->stream); /* in memory */
	free(report->text);
	pthread_cond_destroy(&report->over);
	pthread_mutex_destroy(&report->lock);
	free(report);
}

/* In the loop's thread: no longer in the list. */
static void report_end(struct daemon_report *report, int outcome)
{
	bool is_left;

	if (report->stream && fclose(report->stream) != 0 && outcome == 0)
		outcome = -ENOMEM;
	report->stream = NULL;
	pthread_mutex_lock(&report->lock);
	report->outcome = outcome;
	report->is_over = true;
	is_left = report->is_left;
	pthread_cond_signal(&report->over);
	pthread_mutex_unlock(&report->lock);
	if (is_left)
		report_free(report);
}

static void report_run(struct worker_job *job)
{
	(void)job; /* only its end matters: it comes in the loop's thread */
}

static void report_ask(struct worker_job *job)
{
	struct daemon_report *report = container_of(job, struct daemon_report, job);
	struct daemon *daemon = report->daemon;

	report->number = ++daemon->report_number;
	report->stream = open_memstream(&report->text, &report->length);
	if (!report->stream || !links_ask(daemon->links, report->number)) {
		report_end(report, report->stream ? -ENOENT : -ENOMEM);
		return;
	}
	report->next = daemon->reports;
	daemon->reports = report;
}

/* All that were asked for until then have the same answer. */
void daemon_report_take(void *context, uint64_t number, const char *text, size_t length)
{
	struct daemon *daemon = context;
	struct daemon_report **place = &daemon->reports;

	while (*place) {
		struct daemon_report *report = *place;
		bool is_whole = length == 0;

		if (report->number <= number && !is_whole)
			(void)fwrite(text, length, 1, report->stream); /* checked at the end */
		if (report->number > number ||
		    (!is_whole && (uint64_t)ftell(report->stream) < REPORT_MAX)) {
			place = &report->next;
			continue;
		}
		*place = report->next;
		report_end(report, is_whole && ftell(report->stream) > 0 ? 0 : -ENOENT);
	}
}

void daemon_report_drop(struct daemon *daemon)
{
	pthread_mutex_lock(&daemon->lock);
	daemon->link_state.has_history = 0;
	pthread_mutex_unlock(&daemon->lock);
	while (daemon->reports) {
		struct daemon_report *report = daemon->reports;

		daemon->reports = report->next;
		report_end(report, -ESHUTDOWN);
	}
}

static int report_wait(struct daemon_report *report, FILE *out)
{
	struct timespec until;
	int outcome = -ETIMEDOUT;
	bool is_over;

	(void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
	until.tv_sec += REPORT_WAIT_S;
	pthread_mutex_lock(&report->lock);
	while (!report->is_over &&
	       pthread_cond_timedwait(&report->over, &report->lock, &until) != ETIMEDOUT)
		continue;
	is_over = report->is_over;
	report->is_left = true;
	if (is_over)
		outcome = report->outcome;
	pthread_mutex_unlock(&report->lock);
	if (!is_over)
		return outcome;
	if (outcome == 0)
		(void)fwrite(report->text, report->length, 1, out); /* its owner checks it */
	report_free(report);
	return outcome;
}

int daemon_report(struct daemon *daemon, FILE *out)
{
	struct daemon_report *report;
	bool has_history;

	pthread_mutex_lock(&daemon->lock);
	has_history = daemon->link_state.has_history;
	pthread_mutex_unlock(&daemon->lock);
	if (!has_history)
		return -ENOENT;
	report = calloc(1, sizeof(*report));
	if (!report)
		return -ENOMEM;
	report->daemon = daemon;
	report->job = (struct worker_job){.run = report_run, .done = report_ask};
	(void)pthread_mutex_init(&report->lock, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&report->over, NULL);  /* likewise */
	if (!worker_put(daemon->exits_worker, &report->job)) {
		report_free(report);
		return -ESHUTDOWN;
	}
	return report_wait(report, out);
}
