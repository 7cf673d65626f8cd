/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The history knows who has ended, the flight recorder whose books it has: who is only in the first
 * is missing. A failure to find out is no reason to refuse the moment itself.
 */

#include "daemon/daemon-moment-gaps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/process-id.h"
#include "daemon/flight/moment-cache.h"
#include "model/snapshot.h"
#include "store/store.h"

struct daemon_kept {
	struct process_id *list; /* owned */
	size_t count, capacity;
	uint64_t at_ns;
	size_t missing;
};

static void daemon_kept_deinit(struct daemon_kept *kept)
{
	free(kept->list);
}

static int daemon_moment_gaps_keep(void *context, struct process_id process)
{
	struct daemon_kept *kept = context;
	void *list = array_grow(kept->list, &kept->capacity, kept->count + 1, sizeof(*kept->list));

	if (!list)
		return -ENOMEM;
	kept->list = list;
	kept->list[kept->count++] = process;
	return 0;
}

static int daemon_moment_gaps_count(void *context, const struct store_ended *ended)
{
	const struct store_process *process = &ended->process;
	struct daemon_kept *kept = context;

	if (process->start_ns > kept->at_ns)
		return 0;
	for (size_t i = 0; i < kept->count; i++) {
		if (process_id_equal(kept->list[i], process->id))
			return 0;
	}
	kept->missing++;
	return 0;
}

void daemon_moment_gaps_ended(struct snapshot *snapshot, struct moment_cache *cache,
			      struct store_reader *reader)
{
	CLEANUP(daemon_kept_deinit) struct daemon_kept kept = {.at_ns = snapshot->time_ns};
	const struct store_filter filter = {.since_ns = snapshot->time_ns};
	struct store_cursor next = {0};

	if (moment_cache_kept(cache, snapshot->time_ns, daemon_moment_gaps_keep, &kept) < 0 ||
	    store_query_endings(reader, &filter, daemon_moment_gaps_count, &kept, &next) < 0 ||
	    kept.missing == 0)
		return;
	snapshot->exact = false;
	snapshot_note(snapshot,
		      "%zu process%s ended since %s not in it: the flight recorder has not kept "
		      "what %s had",
		      kept.missing, kept.missing == 1 ? " that has" : "es that have",
		      kept.missing == 1 ? "is" : "are", kept.missing == 1 ? "it" : "they");
}

void daemon_moment_gaps_driver(struct snapshot *snapshot, const struct snapshot *totals)
{
	bool has_driver = false;

	for (size_t i = 0; i < totals->device_count; i++)
		has_driver |= totals->devices[i].present || totals->devices[i].untracked > 0;
	if (has_driver)
		snapshot_note(snapshot,
			      "sensors, memory of the driver and processes that are not tracked "
			      "are not recorded, so not known of a moment of the past");
}
