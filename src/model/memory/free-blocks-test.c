/* SPDX-License-Identifier: Apache-2.0 */

/* Free blocks, what fits, and hostile books. cli/map-test.c compares with an allocator. */

#include "model/memory/free-blocks.h"

#include <errno.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

enum {
	OWNS = 1,
	PREALLOCATED = 2,
	ALIAS = 4,
};

static struct snapshot *start(const struct snapshot_window *dram)
{
	struct snapshot_process process = {
		.id.pid = 1, .alive = true, .exact = true, .comm = "test"};
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

static struct free_blocks look(struct snapshot *snapshot, uint32_t type)
{
	struct free_blocks free_blocks = FREE_BLOCKS_NULL;

	assert(snapshot_finish(snapshot) == 0);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	assert(free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], type,
				&free_blocks) == 0);
	return free_blocks;
}

static const struct snapshot_window small = {.base = 100, .size = 1000, .banks = 4, .alignment = 1};

static void fits(const struct free_blocks *free_blocks, uint64_t size, uint64_t page_size, bool top,
		 struct free_blocks_fit *ret_fit)
{
	const struct free_blocks_request request = {
		.size = size, .page_size = page_size, .top = top};

	free_blocks_fit(free_blocks, &request, ret_fit);
}

UNIT(empty_memory_is_one_free_block)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks free_blocks = look(snapshot, TYPES_DRAM);
	uint64_t occupied;

	assert(free_blocks.hole_count == 1 && free_blocks.holes[0].address == 100);
	assert(free_blocks.largest == 1000 && free_blocks.free == 1000 && free_blocks.used == 0);
	assert(free_blocks_fragmentation(&free_blocks) == 0);
	assert(free_blocks_occupied(&free_blocks, &occupied) && occupied == 0);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(holes_lie_between_blocks)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks free_blocks;
	struct free_blocks_fit fit;
	uint64_t occupied;

	add(snapshot, TYPES_DRAM, 900, 200, OWNS); /* to the end */
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	add(snapshot, TYPES_DRAM, 300, 50, OWNS); /* adjacent */
	add(snapshot, TYPES_L1, 500, 100, OWNS);  /* another memory */
	add(snapshot, TYPES_DRAM, 600, 100, ALIAS);
	add(snapshot, TYPES_DRAM, 700, 100, PREALLOCATED);
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.block_count == 3 && free_blocks.hole_count == 2 &&
	       free_blocks.unplaced == 0);
	assert(free_blocks.holes[0].address == 100 && free_blocks.holes[0].length == 100);
	assert(free_blocks.holes[1].address == 350 && free_blocks.holes[1].length == 550);
	assert(free_blocks.used == 350 && free_blocks.free == 650 && free_blocks.largest == 550);
	assert(free_blocks_occupied(&free_blocks, &occupied) && occupied == 1400);

	fits(&free_blocks, 4 * 100, 0, false, &fit);
	assert(fit.verdict == FREE_BLOCKS_FITS && fit.need == 100 && fit.address == 100);
	fits(&free_blocks, 4 * 100, 0, true, &fit);
	assert(fit.verdict == FREE_BLOCKS_FITS && fit.address == 800 && fit.length == 550);
	fits(&free_blocks, 4 * 551, 0, false, &fit);
	assert(fit.verdict == FREE_BLOCKS_CUT && fit.count == 1 && fit.bytes == 50);
	assert(free_blocks.blocks[fit.first].address == 300);
	fits(&free_blocks, 4 * 651, 0, false, &fit);
	assert(fit.verdict == FREE_BLOCKS_FULL && fit.count == 2 && fit.bytes == 150);
	fits(&free_blocks, 4 * 1001, 0, false, &fit);
	assert(fit.verdict == FREE_BLOCKS_LARGE && fit.count == 0);
	/* One page takes its size in every bank. */
	fits(&free_blocks, 551, 551, false, &fit);
	assert(fit.verdict == FREE_BLOCKS_CUT && fit.need == 551);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(only_what_is_aligned_can_be_had)
{
	const struct snapshot_window window = {
		.base = 64, .size = 960, .banks = 4, .alignment = 64};
	struct snapshot *snapshot = start(&window);
	struct free_blocks free_blocks;

	add(snapshot, TYPES_DRAM, 70, 1, OWNS);
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.hole_count == 2);
	assert(free_blocks.holes[0].address == 128 && free_blocks.holes[0].length == 64);
	assert(free_blocks.holes[1].address == 320 && free_blocks.holes[1].length == 704);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(memory_of_another_window_is_not_free)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks free_blocks;

	snapshot->processes[0].parts[0].facts.windows[TYPES_TRACE] =
		(struct snapshot_window){.base = 1000, .size = 100, .banks = 4};
	add(snapshot, TYPES_TRACE, 1000, 60, OWNS);
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.size == 900 && free_blocks.largest == 900);
	free_blocks_deinit(&free_blocks);
	assert(free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_TRACE,
				&free_blocks) == 0);
	assert(free_blocks.used == 60 && free_blocks.free == 40);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(overlapping_blocks_count_once)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks free_blocks;

	add(snapshot, TYPES_DRAM, 100, 500, OWNS);
	add(snapshot, TYPES_DRAM, 200, 100, OWNS);
	add(snapshot, TYPES_DRAM, 500, 200, OWNS);
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.used == 600 && free_blocks.free == 400 && free_blocks.hole_count == 1);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(buffers_outside_the_window_are_reported)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks free_blocks;
	uint64_t occupied;

	add(snapshot, TYPES_DRAM, 50, 100, OWNS);
	add(snapshot, TYPES_DRAM, 1050, 100, OWNS);
	add(snapshot, TYPES_DRAM, UINT64_MAX, UINT64_MAX, OWNS);
	add(snapshot, TYPES_DRAM, 400, 0, OWNS); /* its share per bank is not known */
	snapshot->buffers[3].size = 40;
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.unplaced == 3 && free_blocks.guessed == 1 && free_blocks.used == 10);
	assert(!free_blocks_occupied(&free_blocks, &occupied));
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

UNIT(the_share_of_a_bank_is_reported_or_even_or_not_known)
{
	struct snapshot *snapshot = start(&small);
	const struct snapshot_part *part = &snapshot->processes[0].parts[0];
	struct snapshot_buffer buffer = {.size = 41, .type = TYPES_DRAM, .size_per_bank = 64};

	assert(snapshot_finish(snapshot) == 0);
	assert(free_blocks_share(snapshot, part, &buffer) == 64);
	buffer.size_per_bank = 0;
	assert(free_blocks_share(snapshot, part, &buffer) == 11); /* of four banks */
	buffer.type = TYPES_L1;
	assert(free_blocks_share(snapshot, part, &buffer) == 0);
	buffer.type = TYPES_KERNEL;
	assert(free_blocks_share(snapshot, part, &buffer) == 0);
	snapshot_free(snapshot);
}

UNIT(invalid_windows_are_refused)
{
	static const struct snapshot_window odd[] = {
		{0},
		{.base = UINT64_MAX, .size = 2, .banks = 1},
		{.base = 0, .size = 10, .banks = 0},
	};
	struct free_blocks free_blocks;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct snapshot *snapshot = start(&odd[i]);

		assert(snapshot_finish(snapshot) == 0);
		assert(free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_DRAM,
					&free_blocks) == FREE_BLOCKS_UNKNOWN);
		assert(free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_CB,
					&free_blocks) == -EINVAL);
		snapshot_free(snapshot);
	}
}

/* The largest possible values: nothing may overflow. */
UNIT(the_largest_window)
{
	const struct snapshot_window window = {
		.base = 1, .size = UINT64_MAX - 1, .banks = UINT32_MAX, .alignment = 1u << 31};
	struct snapshot *snapshot = start(&window);
	struct free_blocks free_blocks;
	struct free_blocks_fit fit;

	add(snapshot, TYPES_DRAM, UINT64_MAX - 1000, 1000, OWNS);
	free_blocks = look(snapshot, TYPES_DRAM);
	assert(free_blocks.hole_count == 1);
	fits(&free_blocks, UINT64_MAX, UINT64_MAX, true, &fit);
	assert(fit.verdict == FREE_BLOCKS_LARGE || fit.verdict == FREE_BLOCKS_FULL ||
	       fit.verdict == FREE_BLOCKS_CUT);
	fits(&free_blocks, UINT64_MAX, 0, true, &fit);
	assert(fit.verdict == FREE_BLOCKS_FITS);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}

/* A client that declares nothing, on a card that the driver names; and one that reports ids. */
UNIT(a_card_of_the_driver_says_where_memory_lies)
{
	static const struct snapshot_card card = {.card = "n150", .unique_id = 7};
	static const struct snapshot_window none = {.size = 0};

	for (int ids = 0; ids < 2; ids++) {
		struct snapshot *snapshot = start(&none);
		struct free_blocks free_blocks = FREE_BLOCKS_NULL;
		int r;

		assert(snapshot_add_card(snapshot, &card) == 0);
		add(snapshot, TYPES_DRAM, ids ? UINT64_C(1) << 63 : 4096, 100, OWNS);
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->processes[0].parts[0].card == 0);
		r = free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], TYPES_DRAM,
				     &free_blocks);
		assert(r == (ids ? FREE_BLOCKS_UNKNOWN : 0));
		assert(ids || (free_blocks.banks == 12 && free_blocks.size == UINT64_C(1) << 30));
		free_blocks_deinit(&free_blocks);
		snapshot_free(snapshot);
	}
}

/* L1 of 1000 bytes from 100 on, with a buffer at 900. */
static struct snapshot *start_l1(void)
{
	struct snapshot *snapshot = start(&small);

	snapshot->processes[0].parts[0].facts.windows[TYPES_L1] = small;
	add(snapshot, TYPES_L1, 900, 50, OWNS);
	return snapshot;
}

static bool headroom(struct snapshot *snapshot, uint64_t *ret_bytes)
{
	struct free_blocks free_blocks = look(snapshot, TYPES_L1);
	bool is_known = free_blocks_headroom(&free_blocks, ret_bytes);

	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
	return is_known;
}

UNIT(headroom_is_between_circular_buffers_and_the_lowest_buffer)
{
	struct snapshot *snapshot = start_l1();
	uint64_t bytes;

	add(snapshot, TYPES_L1, 700, 10, OWNS);
	add(snapshot, TYPES_CB, 100, 300, OWNS);
	add(snapshot, TYPES_CB, 150, 50, OWNS);
	assert(headroom(snapshot, &bytes) && bytes == 300);
	/* They meet. */
	snapshot = start_l1();
	add(snapshot, TYPES_CB, 100, 850, OWNS);
	assert(headroom(snapshot, &bytes) && bytes == 0);
	/* No buffer: up to the end. */
	snapshot = start(&small);
	snapshot->processes[0].parts[0].facts.windows[TYPES_L1] = small;
	add(snapshot, TYPES_CB, 100, 300, OWNS);
	assert(headroom(snapshot, &bytes) && bytes == 700);
}

UNIT(headroom_is_unknown_where_circular_buffers_do_not_tell_their_reach)
{
	struct snapshot_buffer silent = {.address = 100, .size = 400, .type = TYPES_CB};
	struct snapshot *snapshot = start_l1();
	uint64_t bytes;

	assert(!headroom(snapshot, &bytes));
	snapshot = start_l1();
	add(snapshot, TYPES_CB, 100, 300, OWNS);
	assert(snapshot_add_buffer(snapshot, &silent) == 0);
	assert(!headroom(snapshot, &bytes));
	/* One lies elsewhere. */
	snapshot = start_l1();
	add(snapshot, TYPES_CB, 100, 300, OWNS);
	add(snapshot, TYPES_CB, 5000, 300, OWNS);
	assert(!headroom(snapshot, &bytes));
}

UNIT(a_sharded_buffer_takes_its_share_on_its_cores)
{
	struct snapshot *snapshot = start(&small);
	struct free_blocks_request request = {.size = 2000, .cores = 2};
	struct free_blocks free_blocks;
	struct free_blocks_fit fit;

	add(snapshot, TYPES_DRAM, 100, 200, OWNS);
	free_blocks = look(snapshot, TYPES_DRAM);
	free_blocks_fit(&free_blocks, &request, &fit); /* 800 are free in each bank */
	assert(fit.verdict == FREE_BLOCKS_FULL && fit.need == 1000);
	request.cores = 4;
	free_blocks_fit(&free_blocks, &request, &fit);
	assert(fit.verdict == FREE_BLOCKS_FITS && fit.need == 500);
	request.cores = 5; /* there are four */
	free_blocks_fit(&free_blocks, &request, &fit);
	assert(fit.verdict == FREE_BLOCKS_LARGE);
	request = (struct free_blocks_request){.size = 2000, .is_sharded = true};
	free_blocks_fit(&free_blocks, &request, &fit);
	assert(fit.verdict == FREE_BLOCKS_CORES);
	request.size = 800; /* even on one core */
	free_blocks_fit(&free_blocks, &request, &fit);
	assert(fit.verdict == FREE_BLOCKS_FITS);
	request.size = 4000; /* not even on four */
	free_blocks_fit(&free_blocks, &request, &fit);
	assert(fit.verdict == FREE_BLOCKS_FULL);
	free_blocks_deinit(&free_blocks);
	snapshot_free(snapshot);
}
