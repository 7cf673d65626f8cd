/* SPDX-License-Identifier: Apache-2.0 */

/* Which devices are the same, and the sums over several processes. */

#include "model/merge.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"

enum {
	DRAM = 0,
	L1 = 1,
};

static struct snapshot_part *part(struct snapshot *snapshot, uint32_t pid, bool alive,
				  uint32_t device, uint64_t unique_id)
{
	struct snapshot_process identity = {.id.pid = pid,
					    .id.start_ticks = pid,
					    .alive = alive,
					    .exact = true,
					    .comm = "test"};
	struct snapshot_part *part;
	uint32_t process;

	assert(snapshot_add_process(snapshot, &identity, &process) == 0);
	part = snapshot_part(snapshot, process, device);
	assert(part);
	part->facts.unique_id = unique_id;
	return part;
}

static void use(struct snapshot_part *part, uint32_t type, uint64_t used, uint64_t peak)
{
	struct snapshot_memory memory = {.used = used, .buffers = 1, .peak = peak};

	snapshot_add_memory(&part->memory[type], &memory);
}

static struct snapshot *start(void)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	return snapshot;
}

UNIT(same_id_is_one_row_whatever_its_number)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 3, 0xabc), DRAM, 100, 150);
	use(part(snapshot, 11, true, 1, 0xabc), DRAM, 200, 250);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1);
	assert(snapshot->devices[0].device == 1 && snapshot->devices[0].unique_id == 0xabc);
	assert(!snapshot->devices[0].by_number && snapshot->devices[0].processes == 2);
	assert(snapshot->devices[0].memory[DRAM].used == 300);
	assert(snapshot->devices[0].memory[DRAM].buffers == 2);
	assert(snapshot->processes[0].parts[0].row == 0);
	assert(snapshot->processes[1].parts[0].row == 0);
	snapshot_free(snapshot);
}

UNIT(without_ids_the_number_decides)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 0, 0), DRAM, 1, 1);
	use(part(snapshot, 11, true, 0, 0), DRAM, 2, 2);
	use(part(snapshot, 11, true, 1, 0), DRAM, 4, 4);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->devices[0].by_number && snapshot->devices[0].memory[DRAM].used == 3);
	assert(snapshot->devices[1].by_number && snapshot->devices[1].memory[DRAM].used == 4);
	snapshot_free(snapshot);
}

UNIT(one_with_and_one_without_an_id_are_two)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 0, 0), DRAM, 1, 1);
	use(part(snapshot, 11, true, 0, 0x55), DRAM, 2, 2);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->devices[0].by_number && snapshot->devices[0].memory[DRAM].used == 1);
	assert(!snapshot->devices[1].by_number && snapshot->devices[1].memory[DRAM].used == 2);
	snapshot_free(snapshot);
}

UNIT(rows_are_sorted_by_number_and_parts_follow)
{
	struct snapshot *snapshot = start();

	for (uint32_t i = 0; i < 100; i++)
		use(part(snapshot, 10, true, 99 - i, 1 + i % 7 * 1000 + i), DRAM, i, i);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 100);
	for (uint32_t i = 0; i < 100; i++) {
		const struct snapshot_part *one = &snapshot->processes[0].parts[i];

		assert(snapshot->devices[i].device == i);
		assert(snapshot->devices[one->row].unique_id == one->facts.unique_id);
	}
	snapshot_free(snapshot);
}

UNIT(peak_is_known_for_one_process_only)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 0, 0), DRAM, 100, 150);
	use(part(snapshot, 10, true, 1, 0), DRAM, 100, 160);
	use(part(snapshot, 11, true, 1, 0), DRAM, 100, 170);
	use(part(snapshot, 12, false, 2, 0), DRAM, 100, 180);
	assert(snapshot_finish(snapshot) == 0);
	assert(!snapshot->devices[0].memory[DRAM].peak_is_unknown);
	assert(snapshot->devices[0].memory[DRAM].peak == 150);
	assert(snapshot->devices[1].memory[DRAM].peak_is_unknown);
	assert(snapshot->devices[2].memory[DRAM].peak_is_unknown);
	snapshot_free(snapshot);
}

UNIT(dead_processes_hold_nothing)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, false, 0, 0x1), DRAM, 100, 150);
	use(part(snapshot, 11, true, 0, 0x1), DRAM, 7, 9);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1);
	assert(snapshot->devices[0].memory[DRAM].used == 7);
	assert(snapshot->devices[0].memory[DRAM].peak == 9);
	assert(snapshot->devices[0].processes == 1);
	assert(snapshot->processes[0].parts[0].memory[DRAM].used == 100);
	snapshot_free(snapshot);
}

UNIT(two_books_of_a_process_are_added)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 0, 0x1), DRAM, 100, 150);
	use(part(snapshot, 10, true, 0, 0x1), DRAM, 10, 15);
	use(part(snapshot, 10, true, 0, 0x1), L1, 1, 2);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->processes[0].part_count == 1);
	assert(snapshot->devices[0].memory[DRAM].used == 110);
	assert(snapshot->devices[0].processes == 1);
	/* Their peaks need not coincide; L1 has only one. */
	assert(snapshot->processes[0].parts[0].memory[DRAM].peak_is_unknown);
	assert(snapshot->devices[0].memory[DRAM].peak_is_unknown);
	assert(snapshot->devices[0].memory[L1].peak == 2);
	snapshot_free(snapshot);
}

UNIT(facts_of_the_first_process_win_and_others_fill_gaps)
{
	struct snapshot *snapshot = start();
	struct snapshot_part *late = part(snapshot, 20, true, 0, 0x1);
	struct snapshot_part *early;
	struct snapshot_part *dead;

	late->facts.arch = "grayskull";
	late->facts.card = "n300";
	late->facts.capacity[DRAM] = 999;
	late->facts.capacity[L1] = 5;
	dead = part(snapshot, 5, false, 0, 0x1);
	dead->facts.arch = "quasar";
	dead->facts.capacity[DRAM] = 1;
	early = part(snapshot, 10, true, 0, 0x1);
	early->facts.arch = "wormhole_b0";
	early->facts.capacity[DRAM] = 12;
	assert(snapshot_finish(snapshot) == 0);
	assert(strcmp(snapshot->devices[0].arch, "wormhole_b0") == 0);
	assert(strcmp(snapshot->devices[0].card, "n300") == 0);
	assert(snapshot->devices[0].memory[DRAM].capacity == 12);
	assert(snapshot->devices[0].memory[L1].capacity == 5);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "pid 20"));
	snapshot_free(snapshot);
}

UNIT(closed_is_closed_by_everybody)
{
	struct snapshot *snapshot = start();

	part(snapshot, 10, true, 0, 0)->facts.closed_ns = 5;
	part(snapshot, 10, true, 1, 0)->facts.closed_ns = 5;
	part(snapshot, 11, true, 1, 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices[0].closed && !snapshot->devices[1].closed);
	snapshot_free(snapshot);
}

UNIT(sums_stop_at_the_top)
{
	struct snapshot *snapshot = start();

	use(part(snapshot, 10, true, 0, 0), DRAM, UINT64_MAX - 5, 1);
	use(part(snapshot, 11, true, 0, 0), DRAM, 100, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices[0].memory[DRAM].used == UINT64_MAX);
	snapshot_free(snapshot);
}

UNIT(bounds_of_sums)
{
	assert(merge_bound(SNAPSHOT_EXACT, SNAPSHOT_EXACT) == SNAPSHOT_EXACT);
	assert(merge_bound(SNAPSHOT_EXACT, SNAPSHOT_AT_MOST) == SNAPSHOT_AT_MOST);
	assert(merge_bound(SNAPSHOT_AT_LEAST, SNAPSHOT_EXACT) == SNAPSHOT_AT_LEAST);
	assert(merge_bound(SNAPSHOT_AT_MOST, SNAPSHOT_AT_MOST) == SNAPSHOT_AT_MOST);
	assert(merge_bound(SNAPSHOT_AT_LEAST, SNAPSHOT_AT_MOST) == SNAPSHOT_AT_LEAST);
}

UNIT(nothing_merges_to_nothing)
{
	struct snapshot *snapshot = start();

	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 0 && snapshot->exact);
	snapshot_free(snapshot);
}
