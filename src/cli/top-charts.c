/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's time series, as the beginning of the charts of "ttmem top": what devices and the
 * largest processes held in the last minutes. Points are one second apart; types that share a
 * memory, and the devices of a process, are added up.
 */

#include <errno.h>
#include <stdlib.h>

#include "answers/series.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "cli/common/daemon-pages.h"
#include "cli/top-command.h"
#include "model/amount.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/model.h"
#include "tui/series.h"

#define TOP_CHARTS_PROCESSES 32u /* a request each, while the first screen waits */
#define TOP_CHARTS_MAX 256u
#define TOP_CHARTS_POINTS (SERIES_SECONDS + 1)

struct top_chart {
	struct series_key key;
	bool has[TOP_CHARTS_POINTS];
	uint64_t values[TOP_CHARTS_POINTS][SERIES_LINES];
};

struct top_charts {
	const struct series_key *process; /* of the points that come; NULL = of whole devices */
	uint64_t from_ns;                 /* CLOCK_REALTIME of the first point */
	struct top_chart *charts;
	size_t count, capacity;
};

/* NULL: no memory, or too many. */
static struct top_chart *top_charts_get(struct top_charts *self, const struct series_key *key)
{
	struct top_chart *chart;

	for (size_t i = 0; i < self->count; i++) {
		if (self->charts[i].key.high == key->high && self->charts[i].key.low == key->low)
			return &self->charts[i];
	}
	if (self->count >= TOP_CHARTS_MAX)
		return NULL;
	chart = array_grow(self->charts, &self->capacity, self->count + 1, sizeof(*chart));
	if (!chart)
		return NULL;
	self->charts = chart;
	chart += self->count++;
	*chart = (struct top_chart){.key = *key};
	return chart;
}

static struct series_key top_charts_key(const struct top_charts *self, const struct series_row *row)
{
	const struct snapshot_device device = {.device = row->device, .unique_id = row->device_uid};

	return self->process ? *self->process : model_device_key(&device);
}

static void top_charts_point(const struct top_charts *self, struct top_chart *chart,
			     enum series_line line, const struct series_point *point)
{
	uint64_t at = (point->time_ns - self->from_ns) / NS_PER_S;

	if (point->time_ns < self->from_ns || at >= TOP_CHARTS_POINTS)
		return;
	chart->has[at] = true;
	chart->values[at][line] = merge_add(chart->values[at][line], point->used);
}

static int top_charts_row(void *context, const void *series)
{
	struct top_charts *self = context;
	const struct series_row *row = series;
	struct series_key key = top_charts_key(self, row);
	uint32_t type = types_folded(row->type);
	struct top_chart *chart;

	if (type != TYPES_DRAM && type != TYPES_L1)
		return 0;
	chart = top_charts_get(self, &key);
	for (size_t i = 0; chart && i < row->point_count; i++)
		top_charts_point(self, chart, type == TYPES_DRAM ? SERIES_DRAM : SERIES_L1,
				 &row->points[i]);
	return 0;
}

static int top_charts_ask(struct top_charts *self, struct daemon_client *remote, uint32_t pid,
			  uint64_t from_ns)
{
	const struct daemon_pages_query query = {
		.answer = &answers[ANSWERS_SERIES],
		.query = {.given = QUERY_FROM | QUERY_STEP | (pid ? QUERY_PID : 0),
			  .filter.pid = pid,
			  .from_ns = from_ns,
			  .step_ms = 1000},
	};

	return daemon_pages_each(remote, &query, top_charts_row, self, NULL);
}

/* Those that hold the most; a pid may have been another process's before. */
static int top_charts_ask_processes(struct top_charts *self, struct daemon_client *remote,
				    const struct snapshot *snapshot)
{
	const struct snapshot_process *list[TOP_CHARTS_PROCESSES];
	size_t count = amount_largest(snapshot, false, TOP_CHARTS_PROCESSES, list);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct series_key key = model_process_key(list[i]);

		self->process = &key;
		r = top_charts_ask(self, remote, list[i]->id.pid,
				   bits_max(self->from_ns, list[i]->start_ns));
		self->process = NULL;
	}
	return r;
}

/* @until_ns: CLOCK_MONOTONIC; what is drawn live begins there. */
static int top_charts_give(const struct top_chart *chart, uint64_t first_ns, uint64_t until_ns,
			   struct series_set *set)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < TOP_CHARTS_POINTS; i++) {
		const struct series_sample sample = {
			.time_ns = first_ns + i * NS_PER_S,
			.values = {chart->values[i][SERIES_DRAM], chart->values[i][SERIES_L1]},
		};

		if (chart->has[i] && sample.time_ns < until_ns)
			r = series_add(set, &chart->key, &sample);
	}
	return r;
}

int top_charts(struct daemon_client *remote, const struct snapshot *snapshot, uint64_t until_ns,
	       struct series_set *set)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
	uint64_t length = bits_min(SERIES_SECONDS * NS_PER_S, monotonic);
	struct top_charts charts = {.from_ns = now - length};
	int r = top_charts_ask(&charts, remote, 0, charts.from_ns);

	if (r == 0)
		r = top_charts_ask_processes(&charts, remote, snapshot);
	for (size_t i = 0; r >= 0 && i < charts.count; i++) {
		int given = top_charts_give(&charts.charts[i], monotonic - length, until_ns, set);

		r = given < 0 && given != -ENOSPC ? given : r;
	}
	free(charts.charts);
	return r;
}
