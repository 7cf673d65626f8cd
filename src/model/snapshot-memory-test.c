/* SPDX-License-Identifier: Apache-2.0 */

/* A machine put together, and what is found in it, while one allocation fails: all of it is right, or the failure is told. */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "model/by-user.h"
#include "model/filter.h"
#include "model/memory/memory-map.h"
#include "model/memory/overlap.h"
#include "model/sites/group.h"
#include "model/sites/growth.h"
#include "model/snapshot-digest.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

#define PROCESSES 12u
#define CARDS 3u
#define BUFFERS 5u /* of each process on each card */

static const struct stack *stacks[2];
static uint64_t expected; /* what a try finds; 0 = it is not known yet */

static int add_cards(struct snapshot *snapshot)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < CARDS; i++) {
		const struct snapshot_card card = {.number = i,
						   .node = i + 1,
						   .unique_id = 100 + i,
						   .card = "n150",
						   .bus = "0000:01:00.0",
						   .condition.state = SNAPSHOT_PRESENT};

		r = snapshot_add_card(snapshot, &card);
	}
	return r;
}

static int add_part(struct snapshot *snapshot, uint32_t process, uint32_t device)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);
	int r = part ? 0 : -ENOMEM;

	if (r == 0) {
		/* Some know their chip by its id, some only by its number. */
		part->facts.unique_id = process % 2 ? 100 + device : 0;
		part->facts.windows[TYPES_DRAM] =
			(struct snapshot_window){.size = 0x100000, .banks = 2, .alignment = 32};
		part->memory[TYPES_DRAM] = (struct snapshot_memory){
			.used = 64 * BUFFERS, .buffers = BUFFERS, .allocs = BUFFERS};
	}
	for (uint32_t i = 0; r == 0 && i < BUFFERS; i++) {
		const struct snapshot_buffer buffer = {
			.process = process,
			.device = device,
			.address = 0x1000 * (uint64_t)(process % 3 * BUFFERS + i),
			.size = 64,
			.born_ns = snapshot->time_ns - i,
			.birth = i + 1,
			.stack = stacks[i % 2],
			.size_per_bank = 32,
			.banks = 2,
		};

		r = snapshot_add_buffer(snapshot, &buffer);
	}
	return r;
}

static int add_process(struct snapshot *snapshot, uint32_t number)
{
	const struct snapshot_process process = {
		.id = {100 + number, 7},
		.comm = "train",
		.user = number % 2 ? "alice" : "bob",
		.user_id = number % 2,
		.source = "book",
		.alive = number != 3,
		.exact = true,
	};
	const struct snapshot_claim claim = {
		.process = process,
		.device = number % CARDS,
		.facts.unique_id = 100 + number % CARDS,
		.types = 1u << TYPES_DRAM,
		.used[TYPES_DRAM] = 999,
	};
	const struct snapshot_driver_memory memory = {
		.pid = process.id.pid, .number = number % CARDS, .pinned = 4096};
	uint32_t index;
	int r = snapshot_add_process(snapshot, &process, &index);

	if (r == 0)
		snapshot->processes[index].books = 1;
	for (uint32_t i = 0; r == 0 && i < CARDS; i++)
		r = add_part(snapshot, index, i);
	if (r == 0 && number % 4 == 0)
		r = snapshot_add_claim(snapshot, &claim);
	return r == 0 ? snapshot_add_driver_memory(snapshot, &memory) : r;
}

/* The machine, as sources put it together. */
static int make(struct snapshot **ret_snapshot)
{
	struct snapshot *snapshot = snapshot_new(1000);
	int r = snapshot ? add_cards(snapshot) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < PROCESSES; i++)
		r = add_process(snapshot, i);
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r == 0)
		*ret_snapshot = snapshot;
	else
		snapshot_free(snapshot);
	return r;
}

/* Return: @r. */
static int found(int r, uint64_t what)
{
	if (r == 0 && expected == 0)
		expected = what;
	assert(r == 0 ? what == expected : r == -ENOMEM);
	return r;
}

static int try_finish(void *context)
{
	struct snapshot *snapshot = NULL;
	int r = make(&snapshot);

	(void)context;
	if (r == 0)
		snapshot->note_count = 0; /* one that finds no memory is only counted */
	r = found(r, r == 0 ? snapshot_digest_totals(snapshot) : 0);
	snapshot_free(snapshot);
	return r;
}

static uint64_t sum_of(const struct call_site *groups, size_t count)
{
	uint64_t sum = count;

	for (size_t i = 0; i < count; i++)
		sum = hash_u64(sum ^ groups[i].bytes ^ groups[i].buffers << 32);
	return sum;
}

static int try_groups(void *context)
{
	static const enum group_kind kinds[] = {GROUP_NAME, GROUP_PHASE, GROUP_SITE, GROUP_THREAD};
	const struct snapshot *snapshot = context;
	uint64_t sum = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
		struct group_list list = GROUP_LIST_NULL;

		r = group_buffers(snapshot, kinds[i], i % 2, &list);
		sum = hash_u64(sum ^ sum_of(list.groups, list.count) ^
			       sum_of(list.names, list.name_count));
		group_list_deinit(&list);
	}
	return found(r, sum);
}

static int try_users(void *context)
{
	const struct filter filter = {0};
	struct by_user list = BY_USER_NULL;
	uint64_t sum = 0;
	int r = by_user_add(&list, context, &filter, true);

	for (size_t i = 0; i < list.count; i++)
		sum = hash_u64(sum ^ list.rows[i].processes ^ list.rows[i].total << 16);
	by_user_deinit(&list);
	return found(r, sum);
}

static int try_growth(void *context)
{
	struct growth growth = GROWTH_NULL;
	int r = growth_add(&growth, context);

	if (r == 0)
		r = growth_add(&growth, context);
	if (r == 0)
		r = growth_recall(&growth, context, NULL);
	r = found(r, 1 + growth.count + 1000 * growth.name_count + 100000 * growth.samples);
	growth_deinit(&growth);
	return r;
}

static int try_overlaps(void *context)
{
	struct overlaps overlaps = OVERLAPS_NULL;
	int r = overlap_find(context, &overlaps);

	r = found(r, overlaps.count + 1);
	overlap_deinit(&overlaps);
	return r;
}

static int try_maps(void *context)
{
	const struct filter filter = {0};
	struct memory_map map = MEMORY_MAP_NULL;
	uint64_t sum = 0;
	int r = memory_map_find(context, &filter, &map);

	for (size_t i = 0; r == 0 && i < map.count; i++)
		sum = hash_u64(sum ^ map.list[i].free_blocks.used ^
			       (map.list[i].shared ? map.list[i].shared->all.used : 0) << 32);
	memory_map_deinit(&map);
	return found(r, sum);
}

static void sweep(unit_memory_fn *try, void *context)
{
	expected = 0;
	assert(try(context) == 0 && expected != 0);
	assert(unit_memory_sweep(try, context) > 0);
}

static void sweep_machine(unit_memory_fn *try)
{
	struct snapshot *snapshot;

	stacks[0] = testing_stack("a.c:1:f @ app");
	stacks[1] = testing_stack("a.c:2:g @ app -> a.c:9:main @ app");
	assert(make(&snapshot) == 0);
	sweep(try, snapshot);
	snapshot_free(snapshot);
}

UNIT(a_machine_is_put_together_or_there_is_none)
{
	sweep(try_finish, NULL);
}

UNIT(groups_of_buffers_are_whole)
{
	sweep_machine(try_groups);
}

UNIT(sums_of_users_are_whole)
{
	sweep_machine(try_users);
}

UNIT(growth_sees_all_sites)
{
	sweep_machine(try_growth);
}

UNIT(all_overlaps_are_found)
{
	sweep_machine(try_overlaps);
}

UNIT(all_memories_are_found)
{
	sweep_machine(try_maps);
}
