/* SPDX-License-Identifier: Apache-2.0 */

/* Trends from the daemon's time series. */

#include "cli/growth-trend.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "book/format/layout.h"
#include "cli/common/daemon-pages.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

#define TREND_NS UINT64_C(3600000000000)
#define TREND_FINE_NS UINT64_C(600000000000) /* younger processes: one point per second */
#define TREND_LINES_MAX 512u                 /* pairs of device and type of one process */

struct growth_trend_lines {
	size_t count;
	struct {
		uint64_t device;
		uint32_t type;
		struct growth_line line;
	} lines[TREND_LINES_MAX];
};

/* The line of a device and type, which may span pages. NULL if there are too many. */
static struct growth_line *growth_trend_line(struct growth_trend_lines *self, const json_t *row)
{
	uint64_t device = daemon_pages_number(row, "device");
	const char *name = daemon_pages_text(row, "type");
	uint32_t type;
	size_t i = 0;

	if (!name || types_parse(name, &type) < 0)
		return NULL;
	while (i < self->count && (self->lines[i].device != device || self->lines[i].type != type))
		i++;
	if (i == TREND_LINES_MAX)
		return NULL;
	if (i == self->count) {
		self->lines[i].device = device;
		self->lines[i].type = type;
		self->lines[i].line = (struct growth_line){.count = 0};
		self->count++;
	}
	return &self->lines[i].line;
}

static int growth_trend_take(void *context, const json_t *row)
{
	struct growth_line *line = growth_trend_line(context, row);
	const json_t *points = json_object_get(row, "points");

	for (size_t i = 0; line && i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);
		double time = json_number_value(json_array_get(point, 0));
		double used = json_number_value(json_array_get(point, 1));

		if (time > 0 && time < 9e18 && used >= 0 && used < 9e18)
			growth_line_add(line, (uint64_t)time, (uint64_t)used);
	}
	return 0;
}

static uint64_t growth_trend_start(const struct snapshot *snapshot, uint32_t pid)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == pid && snapshot->processes[i].alive)
			return snapshot->processes[i].start_ns;
	}
	return 0;
}

static int growth_trend_one(struct daemon_client *remote, const struct snapshot *snapshot,
			    uint32_t pid, struct growth *growth)
{
	struct growth_trend_lines lines = {.count = 0};
	struct growth_trend trend = {.pid = pid};
	uint64_t hour = snapshot->time_ns - TREND_NS;
	struct daemon_pages_query query = {
		.answer = &answers[ANSWERS_SERIES],
		.query = {.given = QUERY_PID | QUERY_FROM | QUERY_STEP, .filter.pid = pid},
	};
	int r;

	query.query.from_ns = bits_max(hour, growth_trend_start(snapshot, pid));
	query.query.step_ms =
		snapshot->time_ns - query.query.from_ns > TREND_FINE_NS ? 10000 : 1000;
	r = daemon_pages_rows(remote, &query, growth_trend_take, &lines, NULL);
	if (r != 0)
		return r;
	for (size_t i = 0; i < lines.count; i++)
		growth_trend_add(&trend, &lines.lines[i].line);
	if (trend.last_ns > trend.first_ns)
		growth->trends[growth->trend_count++] = trend;
	return 0;
}

int growth_trend_ask(struct daemon_client *remote, const struct snapshot *snapshot,
		     struct growth *growth)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < growth->count; i++) {
		uint32_t pid = growth->sites[i].process.pid;
		bool known = growth->trend_count >= GROWTH_TRENDS_MAX;

		/* Ask once per process: it may have many sites, even if it has no trend. */
		for (size_t k = 0; k < i && !known; k++)
			known = growth->sites[k].process.pid == pid;
		if (!known)
			r = growth_trend_one(remote, snapshot, pid, growth);
	}
	return r > 0 ? 0 : r;
}
