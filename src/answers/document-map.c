/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.map/1 and ttmem.fit/1. */

#include "answers/document.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/memory/memory-map.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

static void document_map_headroom(struct emit *json, const struct free_blocks *free_blocks)
{
	uint64_t headroom;

	if (free_blocks_headroom(free_blocks, &headroom))
		emit_u64(json, "headroom", headroom);
	else
		emit_null(json, "headroom");
}

/* What all processes of the device have of it together. */
static void document_map_shared(struct emit *json, const struct space *space)
{
	const struct memory_shared *shared = space->shared;

	if (!shared) {
		emit_null(json, "shared");
		return;
	}
	emit_open_object(json, "shared");
	emit_u64(json, "used", merge_add(shared->all.used, shared->unplaced));
	emit_u64(json, "free", shared->all.free - bits_min(shared->all.free, shared->unplaced));
	emit_u64(json, "largest", shared->all.largest);
	emit_bool(json, "placed", shared->unplaced == 0);
	emit_open_array(json, "others");
	for (size_t i = 0; i < shared->count; i++) {
		const struct memory_holder *holder = &shared->holders[i];

		if (holder->process == space->process)
			continue;
		emit_open_object(json, NULL);
		emit_u64(json, "pid", holder->process->id.pid);
		emit_string(json, "comm", holder->process->comm);
		emit_u64(json, "bytes", holder->bytes);
		emit_bool(json, "placed", holder->is_placed);
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_close_object(json);
}

void memory_map_document_space(struct emit *json, const struct space *space)
{
	const struct free_blocks *free_blocks = &space->free_blocks;
	uint64_t occupied;

	emit_u64(json, "pid", space->process->id.pid);
	emit_string(json, "comm", space->process->comm);
	emit_u64(json, "device", space->device->device);
	document_uid(json, "uid", space->device->unique_id);
	emit_string(json, "type", types_name(space->type));
	emit_hex(json, "base", free_blocks->base);
	emit_u64(json, "bank_size", free_blocks->size);
	emit_u64(json, "banks", free_blocks->banks);
	emit_u64(json, "alignment", free_blocks->alignment);
	emit_u64(json, "used", free_blocks->used);
	if (free_blocks_occupied(free_blocks, &occupied))
		emit_u64(json, "occupied", occupied);
	else
		emit_null(json, "occupied");
	emit_u64(json, "free", free_blocks->free);
	emit_u64(json, "largest", free_blocks->largest);
	emit_double(json, "fragmentation", free_blocks_fragmentation(free_blocks));
	emit_u64(json, "blocks", free_blocks->block_count);
	emit_u64(json, "guessed", free_blocks->guessed);
	emit_u64(json, "unplaced", free_blocks->unplaced);
	document_map_shared(json, space);
}

static void document_map_hole(struct emit *json, uint64_t address, uint64_t length)
{
	emit_hex(json, "address", address);
	emit_u64(json, "size", length);
	emit_close_object(json);
}

void memory_map_document_map(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot)
{
	document_open_moment(json, "ttmem.map/1", snapshot);
	emit_open_array(json, "maps");
	for (size_t i = 0; i < memory_map->count; i++) {
		const struct free_blocks *free_blocks = &memory_map->list[i].free_blocks;

		emit_open_object(json, NULL);
		memory_map_document_space(json, &memory_map->list[i]);
		if (memory_map->list[i].type == TYPES_L1)
			document_map_headroom(json, free_blocks);
		emit_open_array(json, "holes");
		for (size_t k = 0; k < free_blocks->hole_count; k++) {
			emit_open_object(json, NULL);
			document_map_hole(json, free_blocks->holes[k].address,
					  free_blocks->holes[k].length);
		}
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void document_map_gone(struct emit *json, const struct snapshot *snapshot,
			      const struct free_blocks_fit *fit)
{
	emit_open_array(json, "in_the_way");
	for (size_t i = 0; i < fit->count; i++) {
		const struct free_blocks_block *block = &fit->of->blocks[fit->first + i];
		const struct snapshot_process *process =
			&snapshot->processes[block->buffer->process];

		emit_open_object(json, NULL);
		emit_u64(json, "pid", process->id.pid);
		emit_string(json, "comm", process->comm);
		emit_hex(json, "address", block->address);
		emit_u64(json, "size", block->buffer->size);
		emit_u64(json, "size_per_bank", block->length);
		emit_string(json, "type", types_name(block->buffer->type));
		emit_string(json, "name", block->buffer->name);
		emit_close_object(json);
	}
	emit_close_array(json);
}

void memory_map_document_fit(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot, const struct free_blocks_fit *fits,
			     uint64_t size)
{
	static const char *const reasons[] = {
		[FREE_BLOCKS_FITS] = NULL,
		[FREE_BLOCKS_FULL] = "full",
		[FREE_BLOCKS_CUT] = "cut_up",
		[FREE_BLOCKS_LARGE] = "too_large",
		[FREE_BLOCKS_CORES] = "depends_on_cores",
		[FREE_BLOCKS_HELD] = "held_by_others",
		[FREE_BLOCKS_TAKEN] = "taken_by_others",
	};

	document_open_moment(json, "ttmem.fit/1", snapshot);
	emit_u64(json, "size", size);
	emit_open_array(json, "answers");
	for (size_t i = 0; i < memory_map->count; i++) {
		const struct free_blocks_fit *fit = &fits[i];

		emit_open_object(json, NULL);
		memory_map_document_space(json, &memory_map->list[i]);
		emit_bool(json, "fits", fit->verdict == FREE_BLOCKS_FITS);
		emit_string(json, "reason", reasons[fit->verdict]);
		emit_u64(json, "need_per_bank", fit->need);
		if (fit->verdict == FREE_BLOCKS_FITS) {
			emit_open_object(json, "hole");
			document_map_hole(json, fit->address, fit->length);
		} else {
			emit_null(json, "hole");
		}
		document_map_gone(json, snapshot, fit);
		emit_close_object(json);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
