/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Growth by the daemon's time series: sites are judged by the last minutes finely and the last hours
 * coarsely, and whole processes have a trend over the last hour.
 */

#include "cli/growth-daemon.h"

#include <errno.h>
#include <stdbool.h>

#include "answers/series.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/layout.h"
#include "cli/common/daemon-pages.h"
#include "model/amount.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client.h"

#define RECALL_PROCESSES 32u

#define TREND_NS UINT64_C(3600000000000)
#define TREND_FINE_NS UINT64_C(600000000000) /* younger processes: one point per second */
#define TREND_LINES_MAX 512u                 /* pairs of device and type of one process */

/* Hands out the lines of a process from a time on. 0, a daemon_client_outcome, or a negative errno. */
static int growth_daemon_ask(struct daemon_client *remote, uint32_t pid, uint64_t from_ns,
			     uint32_t step_s, daemon_pages_row_fn *fn, void *context)
{
	const struct daemon_pages_query query = {
		.answer = &answers[ANSWERS_SERIES],
		.query = {.given = QUERY_PID | QUERY_FROM | QUERY_STEP,
			  .filter.pid = pid,
			  .from_ns = from_ns,
			  .step_ms = step_s * 1000},
	};

	return daemon_pages_each(remote, &query, fn, context, NULL);
}

static int growth_daemon_past(void *context, const void *line)
{
	const struct series_row *row = line;
	int r = 0;

	for (size_t i = 0; r == 0 && row->type < BOOK_TYPES && i < row->point_count; i++)
		r = growth_past_add(context, row->device, row->type, row->points[i].time_ns,
				    row->points[i].used);
	return r;
}

/* Likewise. */
static int growth_daemon_recall_one(struct daemon_client *remote, const struct snapshot *snapshot,
				    const struct snapshot_process *process, size_t which,
				    struct growth *growth)
{
	CLEANUP(growth_past_deinit) struct growth_past past = GROWTH_PAST_NULL;
	const struct growth_past_span *span = &growth_past_spans[which];
	int r;

	past.pid = process->id.pid;
	past.end_ns = snapshot->time_ns;
	past.begin_ns =
		bits_max(process->start_ns, past.end_ns - bits_min(past.end_ns, span->span_ns));
	if (past.begin_ns >= past.end_ns)
		return 0;
	r = growth_daemon_ask(remote, past.pid, past.begin_ns, span->step_s, growth_daemon_past,
			      &past);
	if (r != 0)
		return r;
	growth_past_finish(&past);
	return growth_recall(growth, snapshot, &past);
}

int growth_daemon_recall(struct daemon_client *remote, const struct snapshot *snapshot,
			 struct growth *growth)
{
	const struct snapshot_process *list[RECALL_PROCESSES];
	size_t count = amount_largest(snapshot, true, RECALL_PROCESSES, list);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t start = list[i]->start_ns;
		uint64_t life = snapshot->time_ns - bits_min(start, snapshot->time_ns);

		for (size_t k = 0; r == 0 && k < GROWTH_PAST_SPANS; k++) {
			if (k == 0 || life > growth_past_spans[k - 1].span_ns)
				r = growth_daemon_recall_one(remote, snapshot, list[i], k, growth);
		}
	}
	return r == -ENOMEM ? r : 0; /* otherwise there is no past to ask for */
}

struct growth_daemon_lines {
	size_t count;
	struct {
		uint32_t device, type;
		struct growth_line line;
	} lines[TREND_LINES_MAX];
};

/* The line of a device and type, which may span pages. NULL if there are too many. */
static struct growth_line *growth_daemon_line(struct growth_daemon_lines *self,
					      const struct series_row *row)
{
	size_t i = 0;

	while (i < self->count &&
	       (self->lines[i].device != row->device || self->lines[i].type != row->type))
		i++;
	if (i == TREND_LINES_MAX)
		return NULL;
	if (i == self->count) {
		self->lines[i].device = row->device;
		self->lines[i].type = row->type;
		self->lines[i].line = (struct growth_line){.count = 0};
		self->count++;
	}
	return &self->lines[i].line;
}

static int growth_daemon_take(void *context, const void *line)
{
	const struct series_row *row = line;
	struct growth_line *to = row->type < BOOK_TYPES ? growth_daemon_line(context, row) : NULL;

	for (size_t i = 0; to && i < row->point_count; i++)
		growth_line_add(to, row->points[i].time_ns, row->points[i].used);
	return 0;
}

static int growth_daemon_trend(struct daemon_client *remote, const struct snapshot *snapshot,
			       struct process_id id, struct growth *growth)
{
	const struct snapshot_process *process = snapshot_find_living(snapshot, id);
	struct growth_daemon_lines lines = {.count = 0};
	struct growth_trend trend = {.pid = id.pid};
	uint64_t from_ns = bits_max(snapshot->time_ns - TREND_NS, process ? process->start_ns : 0);
	uint32_t step_s = snapshot->time_ns - from_ns > TREND_FINE_NS ? 10 : 1;
	int r = growth_daemon_ask(remote, id.pid, from_ns, step_s, growth_daemon_take, &lines);

	if (r != 0)
		return r;
	for (size_t i = 0; i < lines.count; i++)
		growth_trend_add(&trend, &lines.lines[i].line);
	if (trend.last_ns > trend.first_ns)
		growth->trends[growth->trend_count++] = trend;
	return 0;
}

int growth_daemon_trends(struct daemon_client *remote, const struct snapshot *snapshot,
			 struct growth *growth)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < growth->count; i++) {
		struct process_id id = growth->sites[i].process;
		bool known = growth->trend_count >= GROWTH_TRENDS_MAX;

		/* Ask once per process: it may have many sites, even if it has no trend. */
		for (size_t k = 0; k < i && !known; k++)
			known = growth->sites[k].process.pid == id.pid;
		if (!known)
			r = growth_daemon_trend(remote, snapshot, id, growth);
	}
	return r > 0 ? 0 : r;
}
