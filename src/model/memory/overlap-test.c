/* SPDX-License-Identifier: Apache-2.0 */

/* Which live buffers of two processes lie at the same place, and which only seem to. */

#include "model/memory/overlap.h"

#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

#define CHIP UINT64_C(0x1122334455667788)
#define PREALLOCATED 0x02u

static struct snapshot *start(void)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	return snapshot;
}

/* A process with a book that calls the chip @device. */
static uint32_t process(struct snapshot *snapshot, uint32_t pid, uint32_t device, uint64_t id)
{
	struct snapshot_process process = {
		.id.pid = pid,
		.id.start_ticks = pid * 10,
		.comm = "test",
		.user = "me",
		.source = "book",
		.alive = true,
		.exact = true,
	};
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, device);
	assert(part);
	part->facts.unique_id = id;
	return index;
}

/* Given @born, the order in which they were allocated. */
static struct snapshot_buffer *add(struct snapshot *snapshot, uint32_t process, uint32_t type,
				   uint64_t address, uint64_t size, uint64_t born)
{
	struct snapshot_part *part = &snapshot->processes[process].parts[0];
	struct snapshot_buffer buffer = {
		.process = process,
		.device = part->device,
		.type = (uint8_t)type,
		.address = address,
		.size = size,
		.size_per_bank = size,
		.born_ns = born,
		.refs = 1,
	};

	part->memory[type].buffers++;
	part->memory[type].allocs++;
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	return &snapshot->buffers[snapshot->buffer_count - 1];
}

/* Finishes and releases the snapshot. */
static size_t pairs(struct snapshot *snapshot)
{
	struct overlaps overlaps;
	size_t count;

	assert(snapshot_finish(snapshot) == 0);
	assert(overlap_find(snapshot, &overlaps) == 0 && !overlaps.is_cut);
	count = overlaps.count;
	overlap_deinit(&overlaps);
	snapshot_free(snapshot);
	return count;
}

UNIT(two_processes_at_one_address_are_found_with_the_younger_second)
{
	struct snapshot *snapshot = start();
	uint32_t a = process(snapshot, 10, 0, CHIP), b = process(snapshot, 11, 3, CHIP);
	struct overlaps overlaps;

	add(snapshot, a, TYPES_DRAM, 0x1000, 64, 7);
	add(snapshot, b, TYPES_DRAM, 0x1000, 32, 5);
	assert(snapshot_finish(snapshot) == 0);
	assert(overlap_find(snapshot, &overlaps) == 0);
	assert(overlaps.count == 1 && overlaps.list[0].address == 0x1000);
	assert(overlaps.list[0].first->process == b && overlaps.list[0].second->process == a);
	assert(snapshot->devices[overlaps.list[0].row].unique_id == CHIP);
	overlap_deinit(&overlaps);
	assert(overlap_note_all(snapshot) == 0);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "pid 11 and pid 10"));
	snapshot_free(snapshot);
}

struct row {
	uint32_t who, type; /* process 0 or 1 */
	uint64_t address, size;
};

/* Two processes, the second one with the id @other of its device, and these buffers. */
static size_t pairs_of(uint64_t one, uint64_t other, const struct row *rows, size_t count)
{
	struct snapshot *snapshot = start();
	uint32_t who[2] = {process(snapshot, 10, 0, one), process(snapshot, 11, 0, other)};

	for (size_t i = 0; i < count; i++)
		add(snapshot, who[rows[i].who], rows[i].type, rows[i].address, rows[i].size,
		    rows[i].who + 1);
	return pairs(snapshot);
}

UNIT(ranges_overlap_by_one_byte_or_not_at_all)
{
	static const struct row touch[] = {{0, TYPES_DRAM, 0x1000, 0x100},
					   {1, TYPES_DRAM, 0x1100, 0x100}};
	static const struct row cross[] = {{0, TYPES_DRAM, 0x1000, 0x100},
					   {1, TYPES_DRAM, 0x10ff, 0x100}};

	assert(pairs_of(CHIP, CHIP, touch, ARRAY_SIZE(touch)) == 0);
	assert(pairs_of(CHIP, CHIP, cross, ARRAY_SIZE(cross)) == 1);
}

/* A long buffer, then short ones of its own process, then the other's within the long one. */
UNIT(a_range_is_remembered_behind_shorter_ones)
{
	static const struct row rows[] = {
		{0, TYPES_DRAM, 0x1000, 0x1000},
		{0, TYPES_DRAM, 0x1100, 0x10},
		{0, TYPES_DRAM, 0x1200, 0x10},
		{1, TYPES_DRAM, 0x1800, 0x10},
	};

	assert(pairs_of(CHIP, CHIP, rows, ARRAY_SIZE(rows)) == 1);
}

UNIT(a_pair_is_reported_once_and_every_pair_is)
{
	struct snapshot *snapshot = start();
	uint32_t who[3];

	for (uint32_t i = 0; i < 3; i++) {
		who[i] = process(snapshot, 10 + i, 0, CHIP);
		for (uint64_t k = 0; k < 50; k++)
			add(snapshot, who[i], TYPES_DRAM, 0x1000 + k * 0x100, 0x80, i);
	}
	assert(pairs(snapshot) == 3);
}

UNIT(other_places_do_not_overlap)
{
	/* Another memory; a cached program's; the host's. */
	static const struct row rows[] = {
		{0, TYPES_DRAM, 0x1000, 64},
		{1, TYPES_L1, 0x1000, 64},
		{0, TYPES_CB, 0x2000, 64},
		{1, TYPES_CB, 0x2000, 64},
		{0, TYPES_KERNEL, 0x3000, 64},
		{1, TYPES_KERNEL, 0x3000, 64},
		{0, TYPES_SYSTEM_MEMORY, 0x4000, 64},
		{1, TYPES_SYSTEM_MEMORY, 0x4000, 64},
	};

	assert(pairs_of(CHIP, CHIP, rows, ARRAY_SIZE(rows)) == 0);
}

UNIT(types_that_share_a_memory_overlap)
{
	static const struct row rows[] = {{0, TYPES_DRAM, 0x1000, 64},
					  {1, TYPES_TRACE, 0x1000, 64}};

	assert(pairs_of(CHIP, CHIP, rows, ARRAY_SIZE(rows)) == 1);
}

static const struct row same_place[] = {{0, TYPES_DRAM, 0x1000, 64}, {1, TYPES_DRAM, 0x1000, 64}};

UNIT(another_chip_of_the_same_number_is_another_place)
{
	assert(pairs_of(CHIP, CHIP, same_place, ARRAY_SIZE(same_place)) == 1);
	assert(pairs_of(CHIP, CHIP + 1, same_place, ARRAY_SIZE(same_place)) == 0);
}

UNIT(devices_that_only_have_the_same_number_are_not_compared)
{
	assert(pairs_of(0, 0, same_place, ARRAY_SIZE(same_place)) == 0);
}

UNIT(devices_that_are_summed_up_are_not_one_place)
{
	struct snapshot *snapshot = start();
	uint64_t signature;

	for (uint32_t pid = 10; pid < 13; pid++) {
		uint32_t index = process(snapshot, pid, 0, pid);
		struct snapshot_part *last = NULL;

		for (uint32_t device = 1; device < 1024; device++) {
			last = snapshot_part(snapshot, index, device);
			last->facts.unique_id = pid << 16 | device;
		}
		/* On the last one, which has no row of its own. */
		add(snapshot, index, TYPES_DRAM, 0x1000, 64, pid)->device = last->device;
		last->memory[TYPES_DRAM].buffers = last->memory[TYPES_DRAM].allocs = 1;
		snapshot->processes[index].parts[0].memory[TYPES_DRAM].buffers = 0;
	}
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices_summed > 0 && overlap_count(snapshot, &signature) == 0);
	snapshot_free(snapshot);
}

UNIT(memory_that_is_shared_on_purpose_is_left_out)
{
	static const uint8_t flags[] = {SNAPSHOT_FLAG_ALIAS, PREALLOCATED};

	for (size_t i = 0; i < 2; i++) {
		struct snapshot *snapshot = start();
		uint32_t a = process(snapshot, 10, 0, CHIP), b = process(snapshot, 11, 0, CHIP);

		add(snapshot, a, TYPES_DRAM, 0x1000, 64, 1);
		add(snapshot, b, TYPES_DRAM, 0x1000, 64, 2)->flags = flags[i];
		assert(pairs(snapshot) == 0);
	}
}

UNIT(exited_processes_hold_nothing)
{
	struct snapshot *snapshot = start();
	uint32_t a = process(snapshot, 10, 0, CHIP), b = process(snapshot, 11, 0, CHIP);
	uint32_t c = process(snapshot, 12, 0, CHIP);

	add(snapshot, a, TYPES_DRAM, 0x1000, 64, 1);
	add(snapshot, b, TYPES_DRAM, 0x1000, 64, 2);
	add(snapshot, c, TYPES_DRAM, 0x9000, 64, 2);
	snapshot->processes[b].alive = false;
	assert(pairs(snapshot) == 0);
}

UNIT(buffers_in_some_banks_may_be_in_others)
{
	for (unsigned int both = 0; both < 2; both++) {
		struct snapshot *snapshot = start();
		uint32_t a = process(snapshot, 10, 0, CHIP), b = process(snapshot, 11, 0, CHIP);

		snapshot->processes[a].parts[0].facts.capacity[TYPES_L1] = 8192;
		snapshot->processes[a].parts[0].facts.windows[TYPES_L1] =
			(struct snapshot_window){0, 1024, 8, 16};
		add(snapshot, a, TYPES_L1, 0x100, 64, 1)->banks = 8;
		add(snapshot, b, TYPES_L1, 0x100, 64, 2)->banks = both ? 8 : 4;
		assert(pairs(snapshot) == both);
	}
}

/* Spread over its banks; or, if nothing is known, it takes at least its first byte. */
UNIT(of_a_buffer_without_a_shape_only_what_is_certain_counts)
{
	for (unsigned int known = 0; known < 2; known++) {
		for (uint64_t offset = 0; offset < 16; offset += 4) {
			struct snapshot *snapshot = start();
			uint32_t a = process(snapshot, 10, 0, CHIP);
			uint32_t b = process(snapshot, 11, 0, CHIP);
			struct snapshot_facts *facts = &snapshot->processes[a].parts[0].facts;

			if (known) {
				facts->capacity[TYPES_DRAM] = 8192;
				facts->windows[TYPES_DRAM] =
					(struct snapshot_window){0, 1024, 8, 1};
			}
			add(snapshot, a, TYPES_DRAM, 0x100, 64, 1)->size_per_bank = 0;
			add(snapshot, b, TYPES_DRAM, 0x100 + offset, 8, 2);
			assert(pairs(snapshot) == (offset < (known ? 8u : 1u)));
		}
	}
}

UNIT(what_would_be_compared_is_known_from_totals)
{
	struct snapshot *snapshot = start();
	uint32_t a = process(snapshot, 10, 0, CHIP), b = process(snapshot, 11, 0, CHIP);
	uint64_t before, after;

	add(snapshot, a, TYPES_DRAM, 0x1000, 64, 1);
	add(snapshot, b, TYPES_CB, 0x1000, 64, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(overlap_count(snapshot, &before) == 0);
	snapshot->processes[b].parts[0].memory[TYPES_L1].buffers = 4;
	assert(overlap_count(snapshot, &before) == 5);
	assert(overlap_count(snapshot, &after) == 5 && after == before);
	snapshot->processes[b].parts[0].memory[TYPES_L1].frees++;
	assert(overlap_count(snapshot, &after) == 5 && after != before);
	snapshot_free(snapshot);
}

UNIT(many_processes_at_one_place_are_bounded)
{
	struct snapshot *snapshot = start();
	struct overlaps overlaps;

	for (uint32_t i = 0; i < 2 * OVERLAP_PROCESSES_MAX; i++) {
		uint32_t who = process(snapshot, 10 + i, 0, CHIP);

		add(snapshot, who, TYPES_DRAM, 0x1000, 64, i);
	}
	assert(snapshot_finish(snapshot) == 0);
	assert(overlap_find(snapshot, &overlaps) == 0);
	assert(overlaps.is_cut && overlaps.count == OVERLAP_PAIRS_MAX);
	overlap_deinit(&overlaps);
	assert(overlap_note_all(snapshot) == 0);
	assert(snapshot->note_count == OVERLAP_NOTES_MAX + 2);
	snapshot_free(snapshot);
}
