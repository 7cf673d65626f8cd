/* SPDX-License-Identifier: Apache-2.0 */

/* Which memories of a snapshot are shown, and the notes about those that cannot be. */

#include "model/memory/memory-map.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"

static void add_process(struct snapshot *snapshot, uint32_t pid, bool alive, bool declares)
{
	struct snapshot_process process = {
		.id.pid = pid,
		.alive = alive,
		.exact = true,
		.comm = "test",
	};
	struct snapshot_buffer buffer = {.device = 4, .address = 0x100, .size = 64};
	struct snapshot_part *part;
	uint32_t index = 0;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	snapshot->processes[index].books = 1;
	part = snapshot_part(snapshot, index, 4);
	assert(part);
	part->memory[TYPES_DRAM].buffers = 1;
	if (declares)
		part->facts.windows[TYPES_DRAM] = (struct snapshot_window){0, 0x1000, 2, 32};
	buffer.process = index;
	buffer.type = TYPES_DRAM;
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static struct snapshot *machine(void)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_process(snapshot, 10, true, true);
	add_process(snapshot, 11, true, false);
	add_process(snapshot, 12, false, true);
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

UNIT(maps_are_of_living_processes_with_declared_memory)
{
	struct snapshot *snapshot = machine();
	struct memory_map memory_map = MEMORY_MAP_NULL;
	struct filter filter = {0};

	assert(memory_map_find(snapshot, &filter, &memory_map) == 0);
	assert(memory_map.count == 1 && memory_map.list[0].process->id.pid == 10);
	assert(memory_map.list[0].type == TYPES_DRAM &&
	       memory_map.list[0].free_blocks.block_count == 1);
	assert(memory_map.list[0].free_blocks.used == 32 &&
	       memory_map.list[0].free_blocks.largest == 0x1000 - 0x120);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "pid 11, device 4"));
	memory_map_deinit(&memory_map);
	snapshot_free(snapshot);
}

UNIT(maps_follow_the_filter)
{
	const struct filter wishes[] = {
		{.device_count = 1, .devices = {{.value = 5}}},
		{.pid = 12},
		{.has_type = true, .type = TYPES_CB},
		{.device_count = 1, .devices = {{.by_id = true, .value = 4}}},
	};
	struct snapshot *snapshot = machine();

	for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
		struct memory_map memory_map = MEMORY_MAP_NULL;

		assert(memory_map_find(snapshot, &wishes[i], &memory_map) == 0);
		assert(memory_map.count == 0 && snapshot->note_count == 0);
		memory_map_deinit(&memory_map);
	}
	snapshot_free(snapshot);
}

static size_t fit(const struct memory_map *map, uint64_t size, struct free_blocks_fit *fits)
{
	const struct query request = {.size = size};
	size_t unknown, refused = memory_map_fit(map, &request, fits, &unknown);

	assert(unknown == 0);
	return refused;
}

UNIT(fit_is_answered_for_each_allocator)
{
	struct snapshot *snapshot = machine();
	struct memory_map memory_map = MEMORY_MAP_NULL;
	struct filter filter = {.has_type = true, .type = TYPES_DRAM};
	struct free_blocks_fit fits[1];

	assert(memory_map_find(snapshot, &filter, &memory_map) == 0 && memory_map.count == 1);
	assert(fit(&memory_map, 64, fits) == 0 && fits[0].verdict == FREE_BLOCKS_FITS);
	assert(fit(&memory_map, 0x1e00, fits) == 1 && fits[0].verdict == FREE_BLOCKS_CUT);
	assert(fit(&memory_map, 0x2001, fits) == 1 && fits[0].verdict == FREE_BLOCKS_LARGE);
	memory_map_deinit(&memory_map);
	snapshot_free(snapshot);
}

/* A process with 0x400 bytes in each of two banks at @address, or with bytes whose place is not known. */
static void add_holder(struct snapshot *snapshot, uint32_t pid, uint64_t address, bool is_tracked)
{
	struct snapshot_process process = {
		.id.pid = pid, .alive = true, .exact = true, .comm = "x"};
	struct snapshot_buffer buffer = {.device = 4,
					 .address = address,
					 .size = 0x800,
					 .size_per_bank = 0x400,
					 .banks = 2,
					 .type = TYPES_DRAM};
	struct snapshot_part *part;
	uint32_t index = 0;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, 4);
	assert(part);
	part->memory[TYPES_DRAM].buffers = is_tracked;
	part->memory[TYPES_DRAM].used = 0x800;
	if (!is_tracked)
		return;
	snapshot->processes[index].books = 1;
	part->facts.windows[TYPES_DRAM] = (struct snapshot_window){0, 0x1000, 2, 32};
	buffer.process = index;
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static struct memory_map shared_map(struct snapshot **ret_snapshot, uint64_t other, bool is_tracked)
{
	const struct filter filter = {.has_type = true, .type = TYPES_DRAM, .pid = 1};
	struct memory_map map = MEMORY_MAP_NULL;
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_holder(snapshot, 1, 0, true);
	add_holder(snapshot, 2, other, is_tracked);
	assert(snapshot_finish(snapshot) == 0);
	assert(memory_map_find(snapshot, &filter, &map) == 0 && map.count == 1);
	assert(map.list[0].process->id.pid == 1 && map.list[0].shared);
	assert(map.list[0].shared->count == 2);
	*ret_snapshot = snapshot;
	return map;
}

UNIT(fit_counts_what_other_processes_of_the_device_hold)
{
	struct free_blocks_fit fits[1];
	struct snapshot *snapshot;
	struct memory_map map = shared_map(&snapshot, 0xc00, true);

	/* Its own allocator has 0xc00 in each bank, the device 0x800. */
	assert(fit(&map, 2 * 0x800, fits) == 0);
	assert(fit(&map, 2 * 0x820, fits) == 1 && fits[0].verdict == FREE_BLOCKS_HELD);
	assert(fits[0].count == 1); /* either of them makes room */
	assert(fit(&map, 2 * 0xc20, fits) == 1 && fits[0].verdict == FREE_BLOCKS_FULL);
	memory_map_deinit(&map);
	snapshot_free(snapshot);

	/* The allocator begins where the other one has a buffer, of which it does not know. */
	map = shared_map(&snapshot, 0x400, true);
	assert(fit(&map, 2 * 0x100, fits) == 1 && fits[0].verdict == FREE_BLOCKS_TAKEN);
	assert(fits[0].count == 1 && fits[0].of->blocks[fits[0].first].address == 0x400);
	memory_map_deinit(&map);
	snapshot_free(snapshot);

	/* Of one that is not tracked only the sum is known. */
	map = shared_map(&snapshot, 0, false);
	assert(fit(&map, 2 * 0x800, fits) == 0);
	assert(fit(&map, 2 * 0x820, fits) == 1 && fits[0].verdict == FREE_BLOCKS_HELD);
	memory_map_deinit(&map);
	snapshot_free(snapshot);
}
