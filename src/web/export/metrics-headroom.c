/* SPDX-License-Identifier: Apache-2.0 */

/* Reads one process at a time: a page of its buffers costs no more than they do. */

#include "web/export/metrics-headroom.h"

#include "base/cleanup.h"
#include "model/memory/free-blocks.h"
#include "model/merge.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "web/server/web.h"

uint64_t metrics_headroom_cost(const struct snapshot_process *process)
{
	bool has_circular = false;
	uint64_t sum = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_memory *memory = process->parts[i].memory;

		has_circular = has_circular || memory[TYPES_CB].buffers > 0;
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			sum = merge_add(sum, memory[type].buffers);
	}
	return has_circular ? sum : 0;
}

struct snapshot *metrics_headroom_read(const struct web_provider *provider,
				       const struct snapshot_process *process)
{
	const struct snapshot_request request = {
		.buffers = true,
		.unnamed = true,
		.filter = {.pid = process->id.pid},
		.limit = METRICS_HEADROOM_BUFFERS_MAX,
	};
	struct snapshot *rows = NULL;

	if (provider->snapshot(provider->context, &request, &rows) < 0)
		return NULL;
	if (rows->has_next)
		return snapshot_free(rows);
	snapshot_sort_buffers(rows, SNAPSHOT_BY_PLACE);
	return rows;
}

bool metrics_headroom_of(const struct snapshot *rows, const struct snapshot_process *process,
			 uint32_t device, uint64_t *ret_bytes)
{
	CLEANUP(free_blocks_deinit) struct free_blocks blocks = FREE_BLOCKS_NULL;

	for (uint32_t i = 0; i < rows->process_count; i++) {
		const struct snapshot_part *part = snapshot_find_part(rows, i, device);

		if (rows->processes[i].id.pid != process->id.pid || !rows->processes[i].alive ||
		    !part)
			continue;
		return free_blocks_find(rows, i, part, TYPES_L1, &blocks) == 0 &&
		       free_blocks_headroom(&blocks, ret_bytes);
	}
	return false;
}
