/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of the request that depend on which card a device is. */

#include "model/snapshot-request.h"

/* The process's part in the totals; NULL if it was not there yet. */
static const struct snapshot_part *snapshot_request_part(const struct snapshot *totals,
							 const struct snapshot_process *process,
							 uint32_t device)
{
	const struct snapshot_process *known = snapshot_find_process(totals, process->id);

	return known ? snapshot_find_part(totals, (uint32_t)(known - totals->processes), device)
		     : NULL;
}

bool snapshot_request_wants(const struct snapshot_request *request,
			    const struct snapshot_process *process, uint32_t device,
			    uint64_t declared_id)
{
	const struct snapshot_part *part =
		request->totals && request->filter.device_count
			? snapshot_request_part(request->totals, process, device)
			: NULL;
	const struct snapshot_device *row;

	if (!part)
		return filter_wants_device(&request->filter, device, declared_id);
	row = &request->totals->devices[part->row];
	return filter_wants_device(&request->filter, row->device, row->unique_id);
}

static void snapshot_take_join(const struct snapshot *totals, const struct snapshot_part *known,
			       struct snapshot *snapshot, struct snapshot_part *part)
{
	const struct snapshot_device *row = &totals->devices[known->row];

	part->facts.unique_id = known->facts.unique_id;
	part->joined = known->joined;
	part->card = SNAPSHOT_NO_CARD;
	part->is_joined = true;
	if (snapshot->device_count) {
		snapshot->devices[part->row].unique_id = row->unique_id;
		snapshot->devices[part->row].device = row->device;
	}
}

void snapshot_take_joins(const struct snapshot *totals, struct snapshot *snapshot)
{
	for (size_t i = 0; totals && i < snapshot->process_count; i++) {
		struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *known =
				snapshot_request_part(totals, process, process->parts[k].device);

			if (known)
				snapshot_take_join(totals, known, snapshot, &process->parts[k]);
		}
	}
}
