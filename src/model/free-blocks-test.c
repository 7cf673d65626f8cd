/* SPDX-License-Identifier: Apache-2.0 */

/* Holes between blocks, what fits, and what hostile books say of themselves. The comparison with an allocator is in
 * cli/map-test.c, where one can be had. */

#include "model/free-blocks.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

enum {
	OWNS = 1,
	PREALLOCATED = 2,
	ALIAS = 4,
};

static struct snapshot *start(const struct snapshot_window *dram)
{
	struct snapshot_process process = {.pid = 1, .alive = true, .exact = true, .comm = "test"};
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, 0);
	assert(part);
	part->facts.windows[TYPES_DRAM] = *dram;
	return snapshot;
}

static void add(struct snapshot *snapshot, uint32_t type, uint64_t address, uint64_t per_bank,
		uint32_t flags)
{
	struct snapshot_buffer buffer = {
		.address = address,
		.size = per_bank * 4,
		.type = (uint8_t)type,
		.flags = (uint8_t)flags,
		.banks = 4,
		.size_per_bank = per_bank,
	};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static struct holes look(struct snapshot *snapshot, uint32_t type)
{
	struct holes holes = HOLES_NULL;

	assert(snapshot_finish(snapshot) == 0);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	assert(holes_find(snapshot, 0, &snapshot->processes[0].parts[0], type, &holes) == 0);
	return holes;
}

static const struct snapshot_window small = {.base = 100, .size = 1000, .banks = 4, .alignment = 1};

UNIT(empty_memory_is_one_free_block)
{
	struct snapshot *snapshot = start(&small);
	struct holes holes = look(snapshot, TYPES_DRAM);

	assert(holes.hole_count == 1 && holes.holes[0].address == 100);
	assert(holes.largest == 1000 && holes.free == 1000 && holes.used == 0);
	assert(holes_fragmentation(&holes) == 0);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(holes_lie_between_blocks)
{
	struct snapshot *snapshot = start(&small);
	struct holes holes;
	struct holes_fit fit;

	add(snapshot, TYPES_DRAM, 900, 200, OWNS); /* to the end */
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	add(snapshot, TYPES_DRAM, 300, 50, OWNS); /* they meet */
	add(snapshot, TYPES_L1, 500, 100, OWNS);  /* another memory */
	add(snapshot, TYPES_DRAM, 600, 100, ALIAS);
	add(snapshot, TYPES_DRAM, 700, 100, PREALLOCATED);
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.block_count == 3 && holes.hole_count == 2 && holes.unplaced == 0);
	assert(holes.holes[0].address == 100 && holes.holes[0].length == 100);
	assert(holes.holes[1].address == 350 && holes.holes[1].length == 550);
	assert(holes.used == 350 && holes.free == 650 && holes.largest == 550);

	holes_fit(&holes, 4 * 100, 0, false, &fit);
	assert(fit.verdict == HOLES_FITS && fit.need == 100 && fit.address == 100);
	holes_fit(&holes, 4 * 100, 0, true, &fit);
	assert(fit.verdict == HOLES_FITS && fit.address == 800 && fit.length == 550);
	holes_fit(&holes, 4 * 551, 0, false, &fit);
	assert(fit.verdict == HOLES_CUT && fit.count == 1 && fit.bytes == 50);
	assert(holes.blocks[fit.first].address == 300);
	holes_fit(&holes, 4 * 651, 0, false, &fit);
	assert(fit.verdict == HOLES_FULL && fit.count == 2 && fit.bytes == 150);
	holes_fit(&holes, 4 * 1001, 0, false, &fit);
	assert(fit.verdict == HOLES_LARGE && fit.count == 0);
	/* One page takes its room in every bank. */
	holes_fit(&holes, 551, 551, false, &fit);
	assert(fit.verdict == HOLES_CUT && fit.need == 551);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(only_what_is_aligned_can_be_had)
{
	const struct snapshot_window window = {
		.base = 64, .size = 960, .banks = 4, .alignment = 64};
	struct snapshot *snapshot = start(&window);
	struct holes holes;

	add(snapshot, TYPES_DRAM, 70, 1, OWNS);
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.hole_count == 2);
	assert(holes.holes[0].address == 128 && holes.holes[0].length == 64);
	assert(holes.holes[1].address == 320 && holes.holes[1].length == 704);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(memory_of_another_window_is_not_free)
{
	struct snapshot *snapshot = start(&small);
	struct holes holes;

	snapshot->processes[0].parts[0].facts.windows[TYPES_TRACE] =
		(struct snapshot_window){.base = 1000, .size = 100, .banks = 4};
	add(snapshot, TYPES_TRACE, 1000, 60, OWNS);
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.size == 900 && holes.largest == 900);
	holes_deinit(&holes);
	assert(holes_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_TRACE, &holes) == 0);
	assert(holes.used == 60 && holes.free == 40);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(overlapping_blocks_count_once)
{
	struct snapshot *snapshot = start(&small);
	struct holes holes;

	add(snapshot, TYPES_DRAM, 100, 500, OWNS);
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	add(snapshot, TYPES_DRAM, 500, 200, OWNS);
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.used == 600 && holes.free == 400 && holes.hole_count == 1);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(buffers_outside_the_window_are_reported)
{
	struct snapshot *snapshot = start(&small);
	struct holes holes;

	add(snapshot, TYPES_DRAM, 50, 100, OWNS);
	add(snapshot, TYPES_DRAM, 1050, 100, OWNS);
	add(snapshot, TYPES_DRAM, UINT64_MAX, UINT64_MAX, OWNS);
	add(snapshot, TYPES_DRAM, 400, 0, OWNS); /* its share is not told */
	snapshot->buffers[3].size = 40;
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.unplaced == 3 && holes.guessed == 1 && holes.used == 10);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}

UNIT(invalid_windows_are_refused)
{
	static const struct snapshot_window odd[] = {
		{0},
		{.base = UINT64_MAX, .size = 2, .banks = 1},
		{.base = 0, .size = 10, .banks = 0},
	};
	struct holes holes;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct snapshot *snapshot = start(&odd[i]);

		assert(snapshot_finish(snapshot) == 0);
		assert(holes_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_DRAM,
				  &holes) == HOLES_UNKNOWN);
		assert(holes_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_CB,
				  &holes) == -EINVAL);
		snapshot_free(snapshot);
	}
}

/* The most that can be said: nothing may overflow. */
UNIT(the_largest_window)
{
	const struct snapshot_window window = {
		.base = 1, .size = UINT64_MAX - 1, .banks = UINT32_MAX, .alignment = 1u << 31};
	struct snapshot *snapshot = start(&window);
	struct holes holes;
	struct holes_fit fit;

	add(snapshot, TYPES_DRAM, UINT64_MAX - 1000, 1000, OWNS);
	holes = look(snapshot, TYPES_DRAM);
	assert(holes.hole_count == 1);
	holes_fit(&holes, UINT64_MAX, UINT64_MAX, true, &fit);
	assert(fit.verdict == HOLES_LARGE || fit.verdict == HOLES_FULL || fit.verdict == HOLES_CUT);
	holes_fit(&holes, UINT64_MAX, 0, true, &fit);
	assert(fit.verdict == HOLES_FITS);
	holes_deinit(&holes);
	snapshot_free(snapshot);
}
