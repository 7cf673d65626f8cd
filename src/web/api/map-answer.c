/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes two snapshots. The first has totals only; it shows which devices are meant (by row number,
 * not by each process's own numbering) and how many buffers they have. The second reads the buffers
 * of just these devices.
 */

#include "web/api/map-answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "model/memory/memory-map.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "web/api/moment-answer.h"
#include "web/server/routes.h"
#include "web/server/web.h"

struct map_answer {
	struct snapshot *snapshot; /* owned; memory_map points into it */
	struct memory_map memory_map;
};

static void map_answer_deinit(struct map_answer *map)
{
	memory_map_deinit(&map->memory_map);
	map->snapshot = snapshot_free(map->snapshot);
}

static int map_answer_refuse(struct routes_ask *ask, const char *problem)
{
	snprintf(ask->url->problem, sizeof(ask->url->problem), "%s", problem);
	return -EINVAL;
}

/* Translates the filter's devices into the sources' ids. -E2BIG: more than a filter holds. */
static int map_answer_resolve(const struct snapshot *totals, const struct filter *filter,
			      struct filter *ret_filter)
{
	struct filter resolved = {.pid = filter->pid};

	for (size_t i = 0; filter->device_count && i < totals->device_count; i++) {
		const struct snapshot_device *row = &totals->devices[i];

		if (!filter_wants_device(filter, row->device, row->unique_id))
			continue;
		if (resolved.device_count == FILTER_DEVICES_MAX)
			return -E2BIG;
		resolved.devices[resolved.device_count++] = (struct filter_device){
			.by_id = row->unique_id != 0,
			.value = row->unique_id ? row->unique_id : row->device,
		};
	}
	*ret_filter = resolved;
	return 0;
}

static uint64_t map_answer_count(const struct snapshot *totals, const struct filter *filter)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < totals->process_count; i++) {
		const struct snapshot_process *process = &totals->processes[i];

		if (!process->alive || !filter_wants_pid(filter, process->id.pid))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];
			const struct snapshot_device *row = &totals->devices[part->row];

			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				uint64_t more = part->memory[type].buffers;

				if (filter_wants_device(filter, row->device, row->unique_id) &&
				    __builtin_add_overflow(sum, more, &sum))
					return UINT64_MAX;
			}
		}
	}
	return sum;
}

/*
 * Decides what to read. Positive: nothing, the totals are the whole answer. @ret_count is set if
 * there are too many buffers to read.
 */
static int map_answer_prepare(struct routes_ask *ask, const struct snapshot *totals,
			      struct snapshot_request *ret_request, uint64_t *ret_count)
{
	const struct filter *filter = &ask->query->filter;
	uint64_t count = map_answer_count(totals, filter);
	struct snapshot_request request = {.buffers = true, .unnamed = true};
	struct filter everybody = *filter;

	if (map_answer_resolve(totals, filter, &request.filter) < 0)
		return map_answer_refuse(ask,
					 "so many devices have these numbers that they must be "
					 "named by their unique ids");
	if (count > MAP_ANSWER_BUFFERS_MAX) {
		*ret_count = count;
		return 1;
	}
	if (filter->device_count && !request.filter.device_count)
		return 1;
	/* Others on the same devices count, too, if there are not too many buffers for that. */
	everybody.pid = 0;
	if (map_answer_count(totals, &everybody) <= MAP_ANSWER_BUFFERS_MAX)
		request.filter.pid = 0;
	*ret_request = request;
	return 0;
}

/* The totals, with a note why there is nothing else. */
static int map_answer_refuse_many(const struct web_provider *provider,
				  const struct snapshot_request *like, uint64_t count,
				  struct snapshot **snapshot)
{
	struct snapshot_request totals = *like;
	int r;

	totals.is_own = true;
	*snapshot = snapshot_free(*snapshot);
	r = provider->snapshot(provider->context, &totals, snapshot);
	if (r < 0)
		return r;
	(*snapshot)->exact = false;
	snapshot_note(*snapshot,
		      "%" PRIu64 " buffers are too many for a map over HTTP (%" PRIu64
		      " at most): choose a process, or ask ttmem map",
		      count, MAP_ANSWER_BUFFERS_MAX);
	return 1;
}

/* @ret_map is the caller's. 0, -EINVAL and a problem, or another negative errno. */
static int map_answer_take(struct routes_ask *ask, struct map_answer *ret_map)
{
	struct snapshot_request totals = {0};
	const struct web_provider *provider = ask->provider;
	CLEANUP(map_answer_deinit) struct map_answer map = {NULL, MEMORY_MAP_NULL};
	const struct filter *filter = &ask->query->filter;
	struct snapshot_request request;
	uint64_t count = 0;
	int r;

	if (filter->has_type && !types_has_banks(filter->type))
		return map_answer_refuse(ask, "parameter \"type\" names no memory of its own: "
					      "those are " TYPES_WITH_BANKS);
	r = moment_answer_request(ask, false, &totals);
	if (r == 0)
		r = provider->snapshot(provider->context, &totals, &map.snapshot);
	if (r == 0)
		r = map_answer_prepare(ask, map.snapshot, &request, &count);
	if (count)
		r = map_answer_refuse_many(provider, &totals, count, &map.snapshot);
	if (r == 0) {
		map.snapshot = snapshot_free(map.snapshot);
		request.at_ns = totals.at_ns;
		request.asker = totals.asker;
		r = provider->snapshot(provider->context, &request, &map.snapshot);
		if (r == 0)
			r = memory_map_find(map.snapshot, filter, &map.memory_map);
	}
	if (r < 0)
		return moment_answer_result(ask, r);
	ret_map->snapshot = cleanup_steal(map.snapshot);
	ret_map->memory_map = map.memory_map;
	map.memory_map = MEMORY_MAP_NULL;
	return 0;
}

int map_answer_answer(struct routes_ask *ask, FILE *out)
{
	CLEANUP(map_answer_deinit) struct map_answer map = {NULL, MEMORY_MAP_NULL};
	struct emit json = EMIT_INIT(out);
	int r = map_answer_take(ask, &map);

	if (r == 0)
		memory_map_document_map(&json, &map.memory_map, map.snapshot);
	return r;
}

int map_answer_answer_fit(struct routes_ask *ask, FILE *out)
{
	CLEANUP(map_answer_deinit) struct map_answer map = {NULL, MEMORY_MAP_NULL};
	CLEANUP_FREE struct free_blocks_fit *fits = NULL;
	struct query *query = ask->query;
	struct emit json = EMIT_INIT(out);
	size_t unknown;
	int r;

	if (!(query->given & QUERY_SIZE))
		return map_answer_refuse(ask, "parameter \"size\" is missing");
	/* As the command does. */
	if (!query->filter.has_type) {
		query->filter.has_type = true;
		query->filter.type = TYPES_DRAM;
	}
	r = map_answer_take(ask, &map);
	if (r < 0)
		return r;
	fits = calloc(map.memory_map.count + 1, sizeof(*fits));
	if (!fits)
		return -ENOMEM;
	(void)memory_map_fit(&map.memory_map, query, fits, &unknown); /* in the document */
	memory_map_document_fit(&json, &map.memory_map, map.snapshot, fits, query->size);
	return 0;
}
