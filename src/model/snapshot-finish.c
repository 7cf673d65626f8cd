/* SPDX-License-Identifier: Apache-2.0 */

/* From what the sources said to what is shown: the order of these steps is the order of what depends on what. */

#include <errno.h>

#include "base/cleanup.h"
#include "model/cards/condition.h"
#include "model/cards/declared.h"
#include "model/cards/join.h"
#include "model/merge.h"
#include "model/resolve-claims.h"
#include "model/snapshot.h"
#include "model/stray-frees.h"

/* Gives the driver's figures to the process's part of that card; to one of them, if there are two. */
static void snapshot_join_driver_memory(struct snapshot *snapshot,
					const struct snapshot_driver_memory *memory)
{
	struct snapshot_search search = {.pid = memory->pid};
	struct snapshot_process *process;

	while ((process = snapshot_next_process(snapshot, &search))) {
		for (size_t i = 0; process->alive && i < process->part_count; i++) {
			struct snapshot_part *part = &process->parts[i];
			const struct snapshot_device *row = &snapshot->devices[part->row];

			if (row->present && row->number == memory->number) {
				part->driver_memory = memory;
				return;
			}
		}
	}
}

int snapshot_finish(struct snapshot *snapshot)
{
	CLEANUP(join_cleanup) struct join *join = NULL;
	int r;

	stray_frees_take_out(snapshot);
	declared_refuse(snapshot);
	join = join_new(snapshot);
	r = join ? resolve_claims(snapshot, join) : -ENOMEM;
	if (r < 0)
		return r;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (!snapshot->processes[i].exact && snapshot->processes[i].alive)
			snapshot->exact = false;
	}
	condition_mark_left(snapshot);
	r = declared_sum_up(snapshot);
	if (r == 0)
		r = merge_devices(snapshot, join);
	if (r == 0) {
		resolve_bounds(snapshot);
		condition_finish(snapshot);
	}
	for (size_t i = 0; r == 0 && i < snapshot->driver_memory_count; i++)
		snapshot_join_driver_memory(snapshot, &snapshot->driver_memory[i]);
	return r;
}
