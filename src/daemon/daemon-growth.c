/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Call sites that keep growing, as "ttmem growth" finds them from what the history remembers: no time has
 * to pass. Buffers are read only of processes that hold more and more.
 */

#include <errno.h>

#include "answers/document.h"
#include "answers/growth.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "daemon/daemon.h"
#include "daemon/registry/collector.h"
#include "model/amount.h"
#include "model/query.h"
#include "model/sites/growth.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "store/store.h"

#define DAEMON_GROWTH_PROCESSES 32u   /* whose past is read: the largest that the asker may see */
#define DAEMON_GROWTH_GROWING 8u      /* whose buffers are read */
#define DAEMON_GROWTH_BUFFERS 262144u /* of a process; with more it is not looked at */
#define DAEMON_GROWTH_POINTS 10000u   /* in one reading of the history */
/* For one answer, about a second of a thread that others wait for: 32 processes with 8 devices each. */
#define DAEMON_GROWTH_POINTS_MAX 2000000u

struct daemon_growth {
	struct daemon *daemon;
	const struct query *query;
	const struct query_asker *asker;
	uint64_t now_ns; /* CLOCK_REALTIME */
	struct store_reader *reader;
	struct emit *json;
	struct growth_past *past; /* that is being read */
	uint64_t past_ns;
	uint64_t points; /* read so far */
	size_t growing;
	bool is_cut; /* something was not looked at: it would have taken too long */
};

static int growth_take_point(void *context, const struct store_point *point)
{
	struct daemon_growth *self = context;

	self->points++;
	return growth_past_add(self->past, point->device, point->type, point->time_ns, point->used);
}

static int growth_read_past(struct daemon_growth *self, const struct snapshot_process *process,
			    const struct growth_past_span *span, struct growth_past *past)
{
	struct store_series_query wanted = {
		.step_s = span->step_s,
		.process = process->id,
		.device = STORE_ANY,
		.type = STORE_ANY,
		.limit = DAEMON_GROWTH_POINTS,
	};
	struct store_cursor next = {0};
	int r;

	past->pid = process->id.pid;
	past->end_ns = clock_ns(CLOCK_REALTIME);
	past->begin_ns = bits_max(process->start_ns, past->end_ns - span->span_ns);
	wanted.from_ns = past->begin_ns;
	self->past = past;
	do {
		wanted.after = next;
		next = (struct store_cursor){0};
		r = store_query_series(self->reader, &wanted, growth_take_point, self, &next);
	} while (r == 0 && next.more && self->points < DAEMON_GROWTH_POINTS_MAX);
	if (r == 0 && next.more) {
		/* A part of the past says nothing. */
		growth_past_deinit(past);
		self->is_cut = true;
	}
	growth_past_finish(past);
	return r;
}

/* The sites of one process, by what its buffers and its past say together. */
static int growth_judge_process(struct daemon_growth *self, const struct snapshot_process *process,
				const struct growth_past pasts[GROWTH_PAST_SPANS])
{
	CLEANUP(growth_deinit) struct growth growth = GROWTH_NULL;
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct web_provider *provider = &self->daemon->provider;
	const struct snapshot_request request = {
		.buffers = true,
		.filter = {.pid = process->id.pid},
		.asker = self->asker,
	};
	int r = provider->snapshot(provider->context, &request, &snapshot);

	if (r == 0)
		r = growth_add(&growth, snapshot);
	for (size_t i = 0; r == 0 && i < GROWTH_PAST_SPANS; i++) {
		if (pasts[i].known_ns)
			r = growth_recall(&growth, snapshot, &pasts[i]);
	}
	if (r < 0)
		return r;
	growth_finish(&growth, false);
	self->past_ns = bits_max(self->past_ns, growth.past_ns);
	growth_put_sites(self->json, &growth);
	return 0;
}

static int growth_look_at(struct daemon_growth *self, const struct snapshot_process *process)
{
	struct growth_past pasts[GROWTH_PAST_SPANS] = {{0}};
	uint64_t life = self->now_ns - bits_min(process->start_ns, self->now_ns);
	bool rises = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < GROWTH_PAST_SPANS; i++) {
		if (i > 0 && life <= growth_past_spans[i - 1].span_ns)
			break;
		r = growth_read_past(self, process, &growth_past_spans[i], &pasts[i]);
		rises = rises || growth_past_rises(&pasts[i]);
	}
	if (rises && self->growing == DAEMON_GROWTH_GROWING) {
		self->is_cut = true;
	} else if (r == 0 && rises) {
		self->growing++;
		r = growth_judge_process(self, process, pasts);
	}
	for (size_t i = 0; i < GROWTH_PAST_SPANS; i++)
		growth_past_deinit(&pasts[i]);
	return r;
}

static uint64_t growth_buffer_count(const struct snapshot_process *process)
{
	uint64_t count = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			count += process->parts[i].memory[type].buffers;
	}
	return count;
}

static bool growth_concerns(const struct daemon_growth *self,
			    const struct snapshot_process *process)
{
	const struct query_asker *asker = self->asker;

	return filter_wants_pid(&self->query->filter, process->id.pid) &&
	       (!asker || asker->sees_all || asker->user_id == process->user_id) &&
	       process->start_ns + GROWTH_PAST_LEAST_NS < self->now_ns;
}

static bool growth_wants(const void *context, const struct snapshot_process *process)
{
	return growth_concerns(context, process) &&
	       growth_buffer_count(process) <= DAEMON_GROWTH_BUFFERS;
}

/* Is there a process whose buffers are too many to be looked at? */
static bool growth_leaves_out(const struct daemon_growth *self, const struct snapshot *totals)
{
	for (size_t i = 0; i < totals->process_count; i++) {
		const struct snapshot_process *process = &totals->processes[i];

		if (growth_concerns(self, process) && !growth_wants(self, process))
			return true;
	}
	return false;
}

int daemon_growth(void *context, const struct query *query, const struct query_asker *asker,
		  struct emit *json)
{
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL;
	const struct snapshot_process
		*list[DAEMON_GROWTH_PROCESSES + 1]; /* one more: are there more? */
	struct daemon_growth self = {
		.daemon = context, .query = query, .asker = asker, .json = json};
	const struct amount_choice choice = {.wants = growth_wants, .context = &self};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t count;
	int r;

	if (query->at_ns)
		return -EINVAL;
	r = daemon_reader(context, asker, &self.reader);
	if (r == 0)
		r = collector_totals(self.daemon->collector, now - bits_min(now, NS_PER_S),
				     &totals);
	if (r < 0 || !totals)
		return r < 0 ? r : -EIO;
	self.now_ns = totals->time_ns;
	count = amount_largest_of(totals, &choice, ARRAY_SIZE(list), list);
	document_open(json, growth_document.schema, totals->time_ns);
	emit_open_array(json, "sites");
	for (size_t i = 0; r == 0 && i < count && !self.is_cut; i++) {
		if (i < DAEMON_GROWTH_PROCESSES)
			r = growth_look_at(&self, list[i]);
		else
			self.is_cut = true;
	}
	if (r < 0)
		return r;
	emit_close_array(json);
	emit_u64(json, "samples", 1);
	emit_u64(json, "span_ns", 0);
	emit_u64(json, "past_ns", self.past_ns);
	emit_open_array(json, "trends");
	emit_close_array(json);
	document_list_end(json, !self.is_cut && !growth_leaves_out(&self, totals));
	document_close_bare(json);
	return 0;
}
