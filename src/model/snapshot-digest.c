/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hash of what the document of totals contains. Start times are left out: they are recomputed
 * from clocks each time, and the ticks identify processes.
 */

#include "model/snapshot-digest.h"

#include <string.h>

#include "base/hash.h"
#include "model/snapshot.h"

static uint64_t snapshot_digest_word(uint64_t digest, uint64_t word)
{
	return hash_u64(digest ^ word) + 1;
}

static uint64_t snapshot_digest_text(uint64_t digest, const char *text)
{
	return text ? snapshot_digest_word(digest, hash_bytes(text, strlen(text)))
		    : snapshot_digest_word(digest, 0);
}

static uint64_t snapshot_digest_part(uint64_t digest, const struct snapshot_part *part)
{
	digest = snapshot_digest_word(digest, part->device);
	digest = snapshot_digest_word(digest, part->facts.unique_id);
	digest = snapshot_digest_word(digest, part->facts.closed_ns != 0);
	digest = snapshot_digest_word(digest, part->differs);
	if (part->driver_memory) {
		digest = snapshot_digest_word(digest, part->driver_memory->pinned);
		digest = snapshot_digest_word(digest, part->driver_memory->dma);
		digest = snapshot_digest_word(digest, part->driver_memory->tlb);
		digest = snapshot_digest_word(digest, part->driver_memory->tlb_windows);
	}
	digest = snapshot_digest_word(digest, part->before_reset);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		digest = snapshot_digest_word(digest, memory->used);
		digest = snapshot_digest_word(digest, memory->buffers);
		digest = snapshot_digest_word(digest, memory->peak);
		digest = snapshot_digest_word(digest, memory->allocs);
		digest = snapshot_digest_word(digest, memory->frees);
		digest = snapshot_digest_word(digest, memory->bound);
		digest = snapshot_digest_word(digest, memory->unplaced_frees);
	}
	return digest;
}

uint64_t snapshot_digest_totals(const struct snapshot *snapshot)
{
	uint64_t digest = snapshot_digest_word(snapshot->process_count, snapshot->device_count);

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		digest = snapshot_digest_word(digest, process->id.pid);
		digest = snapshot_digest_word(digest, process->id.start_ticks);
		digest = snapshot_digest_word(digest, process->alive);
		digest = snapshot_digest_word(digest, process->exact);
		digest = snapshot_digest_text(digest, process->gave_up);
		digest = snapshot_digest_text(digest, process->comm);
		for (size_t k = 0; k < process->part_count; k++)
			digest = snapshot_digest_part(digest, &process->parts[k]);
	}
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		digest = snapshot_digest_word(digest, device->unique_id);
		digest = snapshot_digest_word(digest, device->device);
		digest = snapshot_digest_word(digest, device->condition.state);
		digest = snapshot_digest_word(digest, device->condition.outside);
		digest = snapshot_digest_word(digest, device->condition.ended);
		/* In whole degrees and watts, because the fractions change all the time. */
		for (uint32_t sensor = 0; sensor < SNAPSHOT_SENSORS; sensor++)
			digest = snapshot_digest_word(
				digest, (uint64_t)(device->telemetry.value[sensor] / 1000));
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			digest = snapshot_digest_word(digest, device->memory[type].peak);
			digest = snapshot_digest_word(digest, device->memory[type].capacity);
		}
	}
	for (size_t i = 0; i < snapshot->note_count; i++)
		digest = snapshot_digest_text(digest, snapshot->notes[i]);
	return digest;
}
