/* SPDX-License-Identifier: Apache-2.0 */

/* There are few rows, so they are searched linearly. */

#include "model/tally.h"

#include "base/bits.h"
#include "model/merge.h"

struct tally_row *tally_row(struct tally *tally, uint32_t device, uint64_t unique_id)
{
	struct tally_row *row;

	for (size_t i = 0; i < tally->count; i++) {
		row = &tally->rows[i];
		if (row->unique_id == unique_id && (unique_id || row->device == device))
			return row;
	}
	if (tally->count == TALLY_MAX)
		return &tally->rows[TALLY_MAX - 1];
	if (tally->count == TALLY_MAX - 1) {
		device = TALLY_OTHER;
		unique_id = 0;
	}
	row = &tally->rows[tally->count++];
	*row = (struct tally_row){.device = device, .unique_id = unique_id};
	return row;
}

/* A process can lower its own counters: that counts as nothing. */
static uint64_t tally_since(uint64_t count, uint64_t before)
{
	return count > before ? count - before : 0;
}

void tally_add_process(struct tally *tally, const struct snapshot *snapshot, uint32_t index)
{
	const struct snapshot_process *process = &snapshot->processes[index];

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		struct tally_row *row = tally_row(tally, snapshot->devices[part->row].device,
						  part->facts.unique_id);

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &part->memory[type];

			row->allocs[type] =
				merge_add(row->allocs[type],
					  tally_since(memory->allocs, memory->allocs_before));
			row->frees[type] = merge_add(
				row->frees[type], tally_since(memory->frees, memory->frees_before));
		}
	}
}

void tally_add(struct tally *tally, const struct tally *more)
{
	for (size_t i = 0; i < more->count; i++) {
		const struct tally_row *from = &more->rows[i];
		struct tally_row *to = tally_row(tally, from->device, from->unique_id);

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			to->allocs[type] = merge_add(to->allocs[type], from->allocs[type]);
			to->frees[type] = merge_add(to->frees[type], from->frees[type]);
		}
	}
}

void tally_raise(struct tally *tally, const struct tally *last)
{
	for (size_t i = 0; i < last->count; i++) {
		const struct tally_row *from = &last->rows[i];
		struct tally_row *to = tally_row(tally, from->device, from->unique_id);

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			to->allocs[type] = bits_max(to->allocs[type], from->allocs[type]);
			to->frees[type] = bits_max(to->frees[type], from->frees[type]);
		}
	}
}
