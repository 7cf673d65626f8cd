/* SPDX-License-Identifier: Apache-2.0 */

/* Collecting memories from living processes with books: no other source has addresses. */

#include "model/memory/memory-map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/merge.h"
#include "model/query.h"
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
			      process->id.pid, list->device->device, types_name(type));
		return 0;
	}
	if (r == 0)
		memory_map->count++;
	return r;
}

/* Types that lie in a memory, of those that are counted. */
static uint64_t memory_map_held(const struct snapshot_part *part, uint32_t type)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < BOOK_TYPES; k++) {
		const struct snapshot_memory *memory = &part->memory[k];
		uint64_t bytes =
			snapshot_is_occupied(&memory->occupied, memory->buffers, memory->used)
				? memory->occupied.bytes
				: memory->used;

		if (k == type || (type == TYPES_L1 && k == TYPES_CB))
			sum = merge_add(sum, bytes);
	}
	return sum;
}

/* A process declared both. */
static uint64_t memory_map_times(uint64_t bytes, uint32_t banks)
{
	uint64_t product;

	return __builtin_mul_overflow(bytes, (uint64_t)banks, &product) ? UINT64_MAX : product;
}

static int memory_map_add_holder(struct memory_shared *shared, const struct snapshot *snapshot,
				 uint32_t index, const struct snapshot_part *part)
{
	struct memory_holder *holders =
		array_grow(shared->holders, &shared->capacity, shared->count + 1, sizeof(*holders));
	struct memory_holder holder = {
		.process = &snapshot->processes[index],
		.bytes = memory_map_held(part, shared->type),
	};
	int r = 0;

	if (!holders)
		return -ENOMEM;
	shared->holders = holders;
	if (holder.process->books > 0)
		r = free_blocks_find(snapshot, index, part, shared->type, &holder.free_blocks);
	if (r < 0)
		return r;
	holder.is_placed = holder.process->books > 0 && r == 0 && !holder.free_blocks.unplaced;
	if (holder.is_placed && holder.free_blocks.block_count)
		holder.bytes = memory_map_times(holder.free_blocks.used, holder.free_blocks.banks);
	if (holder.bytes > 0)
		holders[shared->count++] = holder;
	else
		free_blocks_deinit(&holder.free_blocks);
	return 0;
}

static int memory_map_join(struct memory_shared *shared, const struct free_blocks *like)
{
	CLEANUP_FREE const struct free_blocks **lists =
		calloc(shared->count + 1, sizeof(const struct free_blocks *));
	uint64_t unplaced = 0;
	size_t n = 0;

	if (!lists)
		return -ENOMEM;
	lists[n++] = like; /* where it lies; its own blocks come again below */
	for (size_t i = 0; i < shared->count; i++) {
		const struct memory_holder *holder = &shared->holders[i];

		if (holder->is_placed && holder->free_blocks.banks == like->banks)
			lists[n++] = &holder->free_blocks;
		else
			unplaced = merge_add(unplaced, holder->bytes);
	}
	shared->unplaced = unplaced / like->banks + (unplaced % like->banks != 0);
	return free_blocks_join(lists, n, &shared->all);
}

static void memory_map_deinit_shared(struct memory_shared *shared)
{
	for (size_t i = 0; i < shared->count; i++)
		free_blocks_deinit(&shared->holders[i].free_blocks);
	free(shared->holders);
	free_blocks_deinit(&shared->all);
}

/* Everybody who holds some of the memory that @space is of. */
static int memory_map_find_shared(const struct snapshot *snapshot, const struct space *space,
				  struct memory_shared *shared)
{
	const struct free_blocks bare = {
		.base = space->free_blocks.base,
		.size = space->free_blocks.size,
		.banks = space->free_blocks.banks,
		.alignment = space->free_blocks.alignment,
	};
	int r = 0;

	*shared = (struct memory_shared){.device = space->device, .type = space->type};
	for (uint32_t i = 0; r == 0 && i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; r == 0 && process->alive && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (&snapshot->devices[part->row] == space->device && !part->before_reset)
				r = memory_map_add_holder(shared, snapshot, i, part);
		}
	}
	return r < 0 ? r : memory_map_join(shared, &bare);
}

static bool memory_map_is_shared(const struct memory_shared *shared,
				 const struct snapshot_process *process)
{
	for (size_t i = 0; i < shared->count; i++) {
		if (shared->holders[i].process != process)
			return true;
	}
	return false;
}

/* Spaces of one device and type share what is known of all its processes. */
static int memory_map_share(struct memory_map *map, const struct snapshot *snapshot)
{
	int r = 0;

	map->shared = calloc(map->count + 1, sizeof(*map->shared));
	if (!map->shared)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < map->count; i++) {
		struct space *space = &map->list[i];
		size_t k = 0;

		while (k < map->shared_count && (map->shared[k].device != space->device ||
						 map->shared[k].type != space->type))
			k++;
		if (k == map->shared_count) {
			r = memory_map_find_shared(snapshot, space, &map->shared[k]);
			map->shared_count++;
		}
		if (r == 0 && memory_map_is_shared(&map->shared[k], space->process))
			space->shared = &map->shared[k];
	}
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
			if (types_has_banks(type) && memory_map_wants(part, filter, type))
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

		if (process->alive && process->books > 0 &&
		    filter_wants_pid(filter, process->id.pid))
			r = memory_map_add_process(&memory_map, snapshot, filter, i);
	}
	if (r == 0)
		r = memory_map_share(&memory_map, snapshot);
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
	for (size_t i = 0; i < memory_map->shared_count; i++)
		memory_map_deinit_shared(&memory_map->shared[i]);
	free(memory_map->shared);
	free(memory_map->list);
	*memory_map = MEMORY_MAP_NULL;
}

/* The allocator of @space would place it at @fit: whether there is room for it on the device. */
static void memory_map_fit_shared(const struct memory_shared *shared,
				  const struct free_blocks_request *request,
				  struct free_blocks_fit *fit)
{
	const struct free_blocks *all = &shared->all;
	struct free_blocks_fit device;

	free_blocks_fit(all, request, &device);
	if (shared->unplaced >= all->free || fit->need > all->free - shared->unplaced) {
		fit->verdict = FREE_BLOCKS_HELD;
		fit->of = device.of;
		fit->first = device.first;
		fit->count = device.verdict == FREE_BLOCKS_FITS ? 0 : device.count;
		fit->bytes = device.verdict == FREE_BLOCKS_FITS ? 0 : device.bytes;
		return;
	}
	for (size_t i = 0; i < all->block_count; i++) {
		const struct free_blocks_block *block = &all->blocks[i];
		bool is_in = block->address < fit->address + fit->need &&
			     block->address + block->length > fit->address;

		if (!is_in && fit->verdict == FREE_BLOCKS_TAKEN)
			break;
		if (!is_in)
			continue;
		if (fit->verdict != FREE_BLOCKS_TAKEN) {
			fit->verdict = FREE_BLOCKS_TAKEN;
			fit->of = all;
			fit->first = i;
			fit->count = 0;
			fit->bytes = 0;
		}
		fit->count++;
		fit->bytes = merge_add(fit->bytes, block->length);
	}
}

size_t memory_map_fit(const struct memory_map *memory_map, const struct query *query,
		      struct free_blocks_fit *ret_fits, size_t *ret_unknown)
{
	size_t refused = 0, unknown = 0;

	for (size_t i = 0; i < memory_map->count; i++) {
		const struct space *space = &memory_map->list[i];
		const struct free_blocks_request one = {
			.size = query->size,
			.per_bank = query->per_bank,
			.page_size = query->page_size,
			.cores = query->cores,
			.is_sharded = space->type == TYPES_L1_SMALL,
			.top = space->type == TYPES_L1 || space->type == TYPES_L1_SMALL,
		};
		struct free_blocks_fit *fit = &ret_fits[i];

		free_blocks_fit(&space->free_blocks, &one, fit);
		if (space->shared && fit->verdict == FREE_BLOCKS_FITS)
			memory_map_fit_shared(space->shared, &one, fit);
		unknown += fit->verdict == FREE_BLOCKS_CORES;
		refused += fit->verdict != FREE_BLOCKS_FITS && fit->verdict != FREE_BLOCKS_CORES;
	}
	*ret_unknown = unknown;
	return refused;
}
