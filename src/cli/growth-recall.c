/* SPDX-License-Identifier: Apache-2.0 */

/* Judging growth by the daemon's time series: the last minutes finely, the last hours coarsely. */

#include "cli/growth-recall.h"

#include <errno.h>
#include <stdbool.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/daemon-pages.h"
#include "model/amount.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

#define RECALL_PROCESSES 32u

static int recall_row(void *context, const json_t *row)
{
	struct growth_past *past = context;
	const json_t *points = json_object_get(row, "points");
	const char *name = daemon_pages_text(row, "type");
	uint64_t device = daemon_pages_number(row, "device");
	uint32_t type;
	int r = 0;

	if (!name || types_parse(name, &type) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);
		double time = json_number_value(json_array_get(point, 0));
		double used = json_number_value(json_array_get(point, 1));

		if (time > 0 && time < 9e18 && used >= 0 && used < 9e18)
			r = growth_past_add(past, device, type, (uint64_t)time, (uint64_t)used);
	}
	return r;
}

/* 0, a daemon_client_outcome, or a negative errno. */
static int recall_one(struct daemon_client *remote, const struct snapshot *snapshot,
		      const struct snapshot_process *process, size_t which, struct growth *growth)
{
	CLEANUP(growth_past_deinit) struct growth_past past = GROWTH_PAST_NULL;
	struct daemon_pages_query query = {
		.answer = &answers[ANSWERS_SERIES],
		.query = {.given = QUERY_PID | QUERY_FROM | QUERY_STEP,
			  .filter.pid = process->id.pid,
			  .step_ms = growth_past_spans[which].step_s * 1000},
	};
	int r;

	past.pid = process->id.pid;
	past.end_ns = snapshot->time_ns;
	past.begin_ns =
		bits_max(process->start_ns,
			 past.end_ns - bits_min(past.end_ns, growth_past_spans[which].span_ns));
	if (past.begin_ns >= past.end_ns)
		return 0;
	query.query.from_ns = past.begin_ns;
	r = daemon_pages_rows(remote, &query, recall_row, &past, NULL);
	if (r != 0)
		return r;
	growth_past_finish(&past);
	return growth_recall(growth, snapshot, &past);
}

int growth_recall_ask(struct daemon_client *remote, const struct snapshot *snapshot,
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
				r = recall_one(remote, snapshot, list[i], k, growth);
		}
	}
	return r == -ENOMEM ? r : 0; /* otherwise there is no past to ask for */
}
