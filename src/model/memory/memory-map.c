/* SPDX-License-Identifier: Apache-2.0 */

/* Collecting memories from living processes with books: no other source has addresses. */

#include "model/memory/memory-map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "model/types.h"

static bool memory_map_wants(const struct snapshot_part *part, const struct filter *filter,
			     uint32_t type)
{
	if (filter->has_type)
		return filter->type == type;
	/* Unused memory is not worth a line. */
	return part->memory[type].buffers > 0 ||
	       (type == TYPES_DRAM && part->memory[TYPES_KERNEL].buffers > 0) ||
	       (type == TYPES_L1 && part->memory[TYPES_CB].buffers > 0);
}

static int memory_map_add(struct memory_map *memory_map, struct snapshot *snapshot, uint32_t index,
			  const struct snapshot_part *part, uint32_t type)
{
	const struct snapshot_process *process = &snapshot->processes[index];
	struct space *list = array_grow(memory_map->list, &memory_map->capacity,
					memory_map->count + 1, sizeof(*memory_map->list));
	int r;

	if (!list)
		return -ENOMEM;
	memory_map->list = list;
	list += memory_map->count;
	*list = (struct space){
		.process = process, .device = &snapshot->devices[part->row], .type = type};
	r = free_blocks_find(snapshot, index, part, type, &list->free_blocks);
	if (r == FREE_BLOCKS_UNKNOWN) {
		snapshot_note(snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": where its %s lies was never declared (ttmem_device)",
			      process->pid, list->device->device, types_name(type));
		return 0;
	}
	if (r == 0)
		memory_map->count++;
	return r;
}

static int memory_map_add_process(struct memory_map *memory_map, struct snapshot *snapshot,
				  const struct filter *filter, uint32_t index)
{
	const struct snapshot_process *process = &snapshot->processes[index];
	int r = 0;

	for (size_t i = 0; r == 0 && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		const struct snapshot_device *row = &snapshot->devices[part->row];

		if (!filter_wants_device(filter, row->device, row->unique_id))
			continue;
		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			if (free_blocks_is_memory(type) && memory_map_wants(part, filter, type))
				r = memory_map_add(memory_map, snapshot, index, part, type);
		}
	}
	return r;
}

int memory_map_find(struct snapshot *snapshot, const struct filter *filter,
		    struct memory_map *ret_map)
{
	CLEANUP(memory_map_deinit) struct memory_map memory_map = MEMORY_MAP_NULL;
	int r = 0;

	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	for (uint32_t i = 0; r == 0 && i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->alive && process->books > 0 && filter_wants_pid(filter, process->pid))
			r = memory_map_add_process(&memory_map, snapshot, filter, i);
	}
	if (r < 0)
		return r;
	*ret_map = memory_map;
	memory_map = MEMORY_MAP_NULL;
	return 0;
}

void memory_map_deinit(struct memory_map *memory_map)
{
	for (size_t i = 0; i < memory_map->count; i++)
		free_blocks_deinit(&memory_map->list[i].free_blocks);
	free(memory_map->list);
	*memory_map = MEMORY_MAP_NULL;
}

size_t memory_map_fit(const struct memory_map *memory_map, uint64_t size, uint64_t page_size,
		      struct free_blocks_fit *ret_fits)
{
	size_t refused = 0;

	for (size_t i = 0; i < memory_map->count; i++) {
		uint32_t type = memory_map->list[i].type;
		bool top = type == TYPES_L1 || type == TYPES_L1_SMALL;

		free_blocks_fit(&memory_map->list[i].free_blocks, size, page_size, top,
				&ret_fits[i]);
		refused += ret_fits[i].verdict != FREE_BLOCKS_FITS;
	}
	return refused;
}
