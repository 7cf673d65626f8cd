/* SPDX-License-Identifier: Apache-2.0 */

/* A hash of what the document of totals is made of. Start times are left out: they are computed anew
 * from clocks each time, and the ticks tell processes apart. */

#include "model/snapshot-digest.h"

#include <string.h>

#include "base/hash.h"
#include "model/snapshot.h"

static uint64_t digest_word(uint64_t digest, uint64_t word)
{
	return hash_u64(digest ^ word) + 1;
}

static uint64_t digest_text(uint64_t digest, const char *text)
{
	return text ? digest_word(digest, hash_bytes(text, strlen(text))) : digest_word(digest, 0);
}

static uint64_t digest_part(uint64_t digest, const struct snapshot_part *part)
{
	digest = digest_word(digest, part->device);
	digest = digest_word(digest, part->facts.unique_id);
	digest = digest_word(digest, part->facts.closed_ns != 0);
	digest = digest_word(digest, part->differs);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		digest = digest_word(digest, memory->used);
		digest = digest_word(digest, memory->buffers);
		digest = digest_word(digest, memory->peak);
		digest = digest_word(digest, memory->allocs);
		digest = digest_word(digest, memory->frees);
		digest = digest_word(digest, memory->bound);
	}
	return digest;
}

uint64_t digest_totals(const struct snapshot *snapshot)
{
	uint64_t digest = digest_word(snapshot->process_count, snapshot->device_count);

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		digest = digest_word(digest, process->pid);
		digest = digest_word(digest, process->start_ticks);
		digest = digest_word(digest, process->alive);
		digest = digest_word(digest, process->exact);
		digest = digest_text(digest, process->comm);
		for (size_t k = 0; k < process->part_count; k++)
			digest = digest_part(digest, &process->parts[k]);
	}
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		digest = digest_word(digest, device->unique_id);
		digest = digest_word(digest, device->device);
		/* To whole degrees and watts: what is behind them changes all the time. */
		for (uint32_t sensor = 0; sensor < SNAPSHOT_SENSORS; sensor++)
			digest = digest_word(digest,
					     (uint64_t)(device->telemetry.value[sensor] / 1000));
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			digest = digest_word(digest, device->memory[type].peak);
			digest = digest_word(digest, device->memory[type].capacity);
		}
	}
	for (size_t i = 0; i < snapshot->note_count; i++)
		digest = digest_text(digest, snapshot->notes[i]);
	return digest;
}
