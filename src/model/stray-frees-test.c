/* SPDX-License-Identifier: Apache-2.0 */

/* Which parts are taken out: only those that say nothing, of devices that nobody knows. */

#include "model/stray-frees.h"

#include "base/testing/unit.h"
#include "model/snapshot.h"

static struct snapshot *stray_start(uint32_t processes)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	for (uint32_t i = 0; i < processes; i++) {
		const struct snapshot_process process = {.id.pid = 100 + i,
							 .id.start_ticks = 1,
							 .comm = "x",
							 .user = "x",
							 .source = "book",
							 .alive = true,
							 .exact = true};
		uint32_t index;

		assert(snapshot_add_process(snapshot, &process, &index) == 0 && index == i);
	}
	return snapshot;
}

/* A part with a free of an unknown buffer. */
static struct snapshot_part *stray_free(struct snapshot *snapshot, uint32_t process,
					uint32_t device)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);

	assert(part);
	part->memory[1].unknown_frees++;
	return part;
}

UNIT(a_stray_free_makes_no_device)
{
	struct snapshot *snapshot = stray_start(2);

	snapshot_part(snapshot, 0, 3)->memory[0] =
		(struct snapshot_memory){.used = 1, .buffers = 1, .allocs = 1};
	(void)stray_free(snapshot, 0, 1023);
	(void)stray_free(snapshot, 0, 1023);
	(void)stray_free(snapshot, 0, 7);
	(void)stray_free(snapshot, 1, 7); /* two wrongs make no device either */
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1 && snapshot->devices[0].device == 3);
	assert(snapshot->processes[0].part_count == 1 && snapshot->processes[1].part_count == 0);
	assert(snapshot->processes[0].stray_frees == 3 && snapshot->processes[1].stray_frees == 1);
	assert(snapshot->exact);
	snapshot_free(snapshot);
}

UNIT(a_device_that_somebody_has_stays)
{
	static const struct snapshot_card card = {.number = 2};
	struct snapshot *snapshot = stray_start(2);

	/* Another process uses it, the driver has it, the process itself declared it. */
	snapshot_part(snapshot, 1, 1)->memory[0] =
		(struct snapshot_memory){.used = 1, .buffers = 1, .allocs = 1};
	(void)stray_free(snapshot, 0, 1);
	assert(snapshot_add_card(snapshot, &card) == 0);
	(void)stray_free(snapshot, 0, 2);
	stray_free(snapshot, 0, 3)->facts.declared = true;
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 3 && snapshot->processes[0].part_count == 3);
	assert(snapshot->processes[0].stray_frees == 0);
	for (size_t i = 0; i < 3; i++)
		assert(snapshot->processes[0].parts[i].memory[1].unknown_frees == 1);
	snapshot_free(snapshot);
}

/* Each of these alone says that the process used the device. */
UNIT(any_other_figure_makes_a_device)
{
	static const struct snapshot_memory figures[] = {
		{.used = 1},           {.buffers = 1},
		{.allocs = 1},         {.frees = 1},
		{.double_frees = 1},   {.hooked = 1},
		{.overflow_frees = 1}, {.bound = SNAPSHOT_AT_LEAST},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		struct snapshot *snapshot = stray_start(1);

		stray_free(snapshot, 0, 5)->memory[2] = figures[i];
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->device_count == 1 && snapshot->processes[0].stray_frees == 0);
		snapshot_free(snapshot);
	}
}
