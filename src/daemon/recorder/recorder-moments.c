/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums are looked for among the finest points first: they are kept for the shortest time. A point's
 * time is its beginning, so the last one that began before the moment has it.
 */

#include "daemon/recorder/recorder-moments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/flight/moment-list.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "store/store.h"

#define RECORDER_SUMS_STEPS 3u /* that a point may be older than the moment */

struct recorder_sums_at {
	uint64_t time_ns; /* of the last point so far */
	struct snapshot *snapshot;
};

static int recorder_moments_text(struct snapshot *snapshot, const char **text, const char *other)
{
	const char *from = *text ? *text : other;

	*text = from ? snapshot_text(snapshot, from, strlen(from)) : NULL;
	return from && !*text ? -ENOMEM : 0;
}

static int recorder_moments_process(struct snapshot *snapshot, const struct store_process *from,
				    uint32_t *ret_index)
{
	struct snapshot_process process = {
		.id = from->id,
		.ns_pid = from->ns_pid,
		.start_ns = from->start_ns,
		.user_id = from->user_id,
		.maker_id = from->user_id,
		.comm = from->comm,
		.user = from->user,
		.container = from->container,
		.source = from->source,
		.alive = true,
		.exact = false,
	};
	int r = recorder_moments_text(snapshot, &process.comm, "");

	if (r == 0)
		r = recorder_moments_text(snapshot, &process.user, "");
	if (r == 0)
		r = recorder_moments_text(snapshot, &process.container, NULL);
	if (r == 0)
		r = recorder_moments_text(snapshot, &process.source, "book");
	return r < 0 ? r : snapshot_add_process(snapshot, &process, ret_index);
}

static int recorder_moments_take(void *context, const struct store_point *point)
{
	struct recorder_sums_at *sums = context;
	struct snapshot_part *part;
	uint32_t process;
	int r;

	if (point->time_ns > sums->time_ns) {
		/* What came before is not wanted any more. */
		snapshot_free(sums->snapshot);
		sums->snapshot = snapshot_new(point->time_ns);
		sums->time_ns = point->time_ns;
	}
	if (!sums->snapshot)
		return -ENOMEM;
	/* Whole devices are added up from their processes. */
	if (!point->process.id.pid || point->type >= BOOK_TYPES)
		return 0;
	r = recorder_moments_process(sums->snapshot, &point->process, &process);
	if (r < 0)
		return r;
	part = snapshot_part(sums->snapshot, process, point->device);
	if (!part)
		return -ENOMEM;
	part->facts.unique_id = point->device_uid;
	part->memory[point->type].used = point->used;
	part->memory[point->type].buffers = point->buffers;
	part->memory[point->type].peak = point->used_max;
	return 0;
}

/* The points of one resolution. */
static int recorder_moments_look(struct store_reader *reader, uint64_t at_ns, uint32_t step_s,
				 struct recorder_sums_at *sums)
{
	uint64_t reach = (uint64_t)step_s * RECORDER_SUMS_STEPS * NS_PER_S;
	struct store_series_query query = {
		.from_ns = at_ns - bits_min(at_ns, reach),
		.to_ns = at_ns,
		.step_s = step_s,
		.device = STORE_ANY,
		.type = STORE_ANY,
	};
	struct store_cursor next = {0};
	int r;

	do {
		query.after = next;
		r = store_query_series(reader, &query, recorder_moments_take, sums, &next);
	} while (r == 0 && next.more);
	return r;
}

int recorder_moments_sums(struct store_reader *reader, uint64_t at_ns,
			  struct snapshot **ret_snapshot)
{
	static const uint32_t steps[] = {1, 10, 60};
	struct recorder_sums_at sums = {0};
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && !sums.time_ns && i < ARRAY_SIZE(steps); i++)
		r = recorder_moments_look(reader, at_ns, steps[i], &sums);
	snapshot = sums.snapshot;
	if (r == 0 && !snapshot)
		r = -ENODATA;
	if (r < 0)
		return r;
	snapshot->time_ns = at_ns;
	snapshot->exact = false;
	r = snapshot_finish(snapshot);
	if (r < 0)
		return r;
	snapshot_note(snapshot,
		      "sums of about that time: the flight recorder does not reach so far");
	*ret_snapshot = cleanup_steal(snapshot);
	return 0;
}

static int recorder_moments_incident(void *context, const struct store_incident *incident)
{
	const struct snapshot_incident *example = &incident->example;

	return moment_list_add(context, &(struct moment_list_one){
						.time_ns = example->time_ns,
						.kind = "incident",
						.process.pid = incident->process.id.pid,
						.comm = incident->process.comm,
						.has_device = true,
						.device = example->device,
						.incident = incident->site.kind,
					});
}

/* Ends of which the flight recorder does not know any more. */
static int recorder_moments_end(void *context, const struct store_ended *ended)
{
	struct moment_list *list = context;
	struct moment_list_one one = {
		.time_ns = ended->process.start_ns,
		.kind = "start",
		.process = ended->process.id,
		.comm = ended->process.comm,
	};
	int r;

	if (moment_list_has(list, one.process))
		return 0;
	r = moment_list_add(list, &one);
	one.kind = "end";
	one.time_ns = ended->ending.ended_ns;
	return r < 0 ? r : moment_list_add(list, &one);
}

static int recorder_moments_run(void *context, const struct store_run *run)
{
	struct moment_list_one one = {
		.time_ns = run->start_ns,
		.kind = "restart",
	};
	int r = moment_list_add(context, &one);

	one.kind = run->state == STORE_RUN_ENDED ? "stop" : "lost";
	one.time_ns = run->end_ns;
	return r < 0 || !run->end_ns ? r : moment_list_add(context, &one);
}

int recorder_moments_list(struct store_reader *reader, struct moment_list *list)
{
	const struct store_incident_rows incidents = {.context = list,
						      .incident = recorder_moments_incident};
	const struct store_filter filter = {.pid = list->query->filter.pid,
					    .since_ns = list->query->from_ns,
					    .limit = list->query->limit};
	struct store_cursor next = {0};
	int r = store_query_incidents(reader, &filter, &incidents, &next);

	list->is_cut = list->is_cut || next.more;
	if (r == 0) {
		next.more = false;
		r = store_query_endings(reader, &filter, recorder_moments_end, list, &next);
		list->is_cut = list->is_cut || next.more;
	}
	if (r == 0)
		r = store_query_runs(reader, list->query->from_ns, list->query->to_ns,
				     recorder_moments_run, list);
	return r;
}
