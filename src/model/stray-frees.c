/* SPDX-License-Identifier: Apache-2.0 */

/* Two passes, because a process may have freed something on every device number there is. */

#include "model/stray-frees.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/merge.h"
#include "model/snapshot.h"

/* The device numbers that somebody uses, or that the driver has. */
struct stray_known {
	bool numbers[BOOK_DEVICES];
};

uint64_t stray_frees_of(const struct snapshot_part *part)
{
	uint64_t frees = 0;

	if (part->facts.declared || part->facts.unique_id)
		return 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		if (memory->used || memory->buffers || memory->allocs || memory->frees ||
		    memory->double_frees || memory->hooked || memory->overflow_frees ||
		    memory->bound != SNAPSHOT_EXACT)
			return 0;
		frees = merge_add(frees, memory->unknown_frees);
	}
	return frees;
}

static void stray_know(struct stray_known *known, uint32_t number)
{
	if (number < BOOK_DEVICES)
		known->numbers[number] = true;
}

static void stray_collect(const struct snapshot *snapshot, struct stray_known *ret_known)
{
	memset(ret_known, 0, sizeof(*ret_known));
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			if (stray_frees_of(&process->parts[k]) == 0)
				stray_know(ret_known, process->parts[k].device);
		}
	}
	for (size_t i = 0; i < snapshot->card_count; i++)
		stray_know(ret_known, snapshot->cards[i].number);
	for (size_t i = 0; i < snapshot->claim_count; i++)
		stray_know(ret_known, snapshot->claims[i].device);
}

void stray_frees_take_out(struct snapshot *snapshot)
{
	struct stray_known known;

	stray_collect(snapshot, &known);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		struct snapshot_process *process = &snapshot->processes[i];
		size_t kept = 0;

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];
			uint64_t frees = stray_frees_of(part);

			if (frees && part->device < BOOK_DEVICES && !known.numbers[part->device])
				process->stray_frees = merge_add(process->stray_frees, frees);
			else
				process->parts[kept++] = *part;
		}
		process->part_count = kept;
	}
}
