/* SPDX-License-Identifier: Apache-2.0 */

/* Which memories of a snapshot are told of, and what is said of those that cannot be. */

#include "model/memory-map.h"

#include <string.h>

#include "base/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

static void add_process(struct snapshot *snapshot, uint32_t pid, bool alive, bool declares)
{
	struct snapshot_process process = {
		.pid = pid,
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
	struct spaces spaces = SPACES_NULL;
	struct filter filter = {0};

	assert(spaces_find(snapshot, &filter, &spaces) == 0);
	assert(spaces.count == 1 && spaces.list[0].process->pid == 10);
	assert(spaces.list[0].type == TYPES_DRAM && spaces.list[0].holes.block_count == 1);
	assert(spaces.list[0].holes.used == 32 && spaces.list[0].holes.largest == 0x1000 - 0x120);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "pid 11, device 4"));
	spaces_deinit(&spaces);
	snapshot_free(snapshot);
}

UNIT(maps_follow_the_filter)
{
	const struct filter wishes[] = {
		{.device_count = 1, .devices = {{.value = 5}}},
		{.has_pid = true, .pid = 12},
		{.has_type = true, .type = TYPES_CB},
		{.device_count = 1, .devices = {{.by_id = true, .value = 4}}},
	};
	struct snapshot *snapshot = machine();

	for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
		struct spaces spaces = SPACES_NULL;

		assert(spaces_find(snapshot, &wishes[i], &spaces) == 0);
		assert(spaces.count == 0 && snapshot->note_count == 0);
		spaces_deinit(&spaces);
	}
	snapshot_free(snapshot);
}

UNIT(fit_is_answered_for_each_allocator)
{
	struct snapshot *snapshot = machine();
	struct spaces spaces = SPACES_NULL;
	struct filter filter = {.has_type = true, .type = TYPES_DRAM};
	struct holes_fit fits[1];

	assert(spaces_find(snapshot, &filter, &spaces) == 0 && spaces.count == 1);
	assert(spaces_fit(&spaces, 64, 0, fits) == 0 && fits[0].verdict == HOLES_FITS);
	assert(spaces_fit(&spaces, 0x1e00, 0, fits) == 1 && fits[0].verdict == HOLES_CUT);
	assert(spaces_fit(&spaces, 0x2001, 0, fits) == 1 && fits[0].verdict == HOLES_LARGE);
	spaces_deinit(&spaces);
	snapshot_free(snapshot);
}
