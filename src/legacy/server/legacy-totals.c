/* SPDX-License-Identifier: Apache-2.0 */

/* Sums over processes and types. They saturate: a process may claim any number. */

#include "legacy/server/legacy-totals.h"

#include <errno.h>
#include <stdbool.h>

#include "model/merge.h"
#include "model/snapshot.h"

/* The smallest device number that is at least @device. */
static bool totals_find(const struct snapshot *snapshot, uint32_t device, uint32_t *ret_device)
{
	bool found = false;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; process->alive && k < process->part_count; k++) {
			uint32_t number = process->parts[k].device;

			if (number >= device && (!found || number < *ret_device)) {
				*ret_device = number;
				found = true;
			}
		}
	}
	return found;
}

int legacy_totals_next(const struct snapshot *snapshot, uint32_t device,
		       struct legacy_totals *ret_totals)
{
	struct legacy_totals totals = {0};

	if (!totals_find(snapshot, device, &totals.device))
		return -ENXIO;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_part *part =
			snapshot_find_part(snapshot, (uint32_t)i, totals.device);

		for (uint32_t t = 0; part && snapshot->processes[i].alive && t < BOOK_TYPES; t++) {
			struct legacy_totals_type *type = &totals.types[t];

			type->bytes = merge_add(type->bytes, part->memory[t].used);
			type->buffers = merge_add(type->buffers, part->memory[t].buffers);
		}
	}
	*ret_totals = totals;
	return 0;
}

struct legacy_totals_type legacy_totals_sum(const struct legacy_totals *totals, uint32_t from,
					    uint32_t to)
{
	struct legacy_totals_type sum = {0};

	for (uint32_t type = from; type < to; type++) {
		sum.bytes = merge_add(sum.bytes, totals->types[type].bytes);
		sum.buffers = merge_add(sum.buffers, totals->types[type].buffers);
	}
	return sum;
}
