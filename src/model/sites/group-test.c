/* SPDX-License-Identifier: Apache-2.0 */

/* Grouping buffers by what they have in common, and sites that grow. */

#include "model/sites/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/sites/growth.h"
#include "model/sites/name-stem.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"

enum {
	DRAM = 0,
	L1 = 1,
	CB = 5,
	ALIAS = 4,
};

static const char *text(struct snapshot *snapshot, const char *bytes)
{
	return bytes ? snapshot_text(snapshot, bytes, strlen(bytes)) : NULL;
}

static struct snapshot *start(uint64_t time_ns)
{
	struct snapshot *snapshot = snapshot_new(time_ns);

	for (uint32_t pid = 10; pid < 12; pid++) {
		struct snapshot_process process = {.id.pid = pid,
						   .id.start_ticks = pid,
						   .alive = true,
						   .exact = true,
						   .comm = "test"};
		uint32_t index;

		assert(snapshot_add_process(snapshot, &process, &index) == 0);
	}
	return snapshot;
}

static void add(struct snapshot *snapshot, uint32_t process, uint8_t type, uint64_t size,
		const char *name, const char *phase)
{
	struct snapshot_buffer buffer = {
		.process = process,
		.type = type,
		.size = size,
		.name = text(snapshot, name),
		.phase = text(snapshot, phase),
		.thread = 100 + process,
		.born_ns = 1000 + size,
		.refs = 1,
	};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static void check(const struct snapshot *snapshot, enum group_kind kind, size_t at, const char *key,
		  uint64_t bytes, uint64_t buffers)
{
	struct group_list list;
	char buffer[128];
	const char *found;

	assert(group_buffers(snapshot, kind, false, &list) == 0);
	assert(at < list.count);
	found = group_key(snapshot, kind, &list.groups[at], buffer, sizeof(buffer));
	assert(!found == !key && (!key || strcmp(found, key) == 0));
	assert(list.groups[at].bytes == bytes && list.groups[at].buffers == buffers);
	group_list_deinit(&list);
}

UNIT(groups_of_each_kind)
{
	struct snapshot *snapshot = start(0);

	add(snapshot, 0, DRAM, 100, "w", "load");
	add(snapshot, 1, DRAM, 200, "w", "run");
	add(snapshot, 1, L1, 50, "w", "run");
	add(snapshot, 1, L1, 7, NULL, "run");
	add(snapshot, 0, L1, 5, NULL, NULL);

	check(snapshot, GROUP_NAME, 0, "w", 350, 3);
	check(snapshot, GROUP_NAME, 1, NULL, 12, 2);
	check(snapshot, GROUP_PHASE, 0, "run", 257, 3);
	check(snapshot, GROUP_PHASE, 1, "load", 100, 1);
	check(snapshot, GROUP_PHASE, 2, NULL, 5, 1);
	check(snapshot, GROUP_SITE, 0, "DRAM w", 300, 2);
	check(snapshot, GROUP_SITE, 1, "L1 w", 50, 1);
	check(snapshot, GROUP_SITE, 2, "L1 in run", 7, 1);
	check(snapshot, GROUP_SITE, 3, "L1", 5, 1);
	check(snapshot, GROUP_THREAD, 0, "11/101", 257, 3);
	check(snapshot, GROUP_THREAD, 1, "10/100", 105, 2);
	snapshot_free(snapshot);
}

/* Buffers "kv.0" to "kv.9" of one stack (NULL = none), and others beside them. */
static struct snapshot *numbered(const char *stack)
{
	struct snapshot *snapshot = start(0);
	char name[16];

	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "kv.%d", i);
		add(snapshot, 0, DRAM, i == 7 ? 20 : 10, name, NULL);
		snapshot->buffers[i].stack = testing_stack(stack);
	}
	add(snapshot, 0, L1, 5, "kv.0", NULL);
	snapshot->buffers[10].stack = testing_stack(stack);
	add(snapshot, 0, DRAM, 3, "w", NULL);
	snapshot->buffers[11].stack = testing_stack(stack);
	return snapshot;
}

UNIT(a_site_is_a_type_and_a_stack_whatever_its_buffers_are_called)
{
	struct snapshot *snapshot = numbered("a.c:3:main -> a.c:9:grow");
	struct group_list list;

	check(snapshot, GROUP_SITE, 0, "DRAM: a.c:3:main -> a.c:9:grow", 113, 11);
	check(snapshot, GROUP_SITE, 1, "L1: a.c:3:main -> a.c:9:grow", 5, 1);
	assert(group_buffers(snapshot, GROUP_SITE, true, &list) == 0);
	assert(list.count == 2 && list.name_count == 12);
	assert(list.groups[0].names == 11 && list.groups[1].names == 1);
	/* The largest comes first. */
	assert(strcmp(list.names[list.groups[0].first_name].name, "kv.7") == 0);
	assert(list.names[list.groups[0].first_name].bytes == 20);
	assert(strcmp(list.names[list.groups[0].first_name + 10].name, "w") == 0);
	assert(strcmp(list.groups[1].name, "kv.0") == 0);
	group_list_deinit(&list);
	snapshot_free(snapshot);
}

UNIT(without_a_stack_names_that_differ_in_numbers_are_one_site)
{
	struct snapshot *snapshot = numbered(NULL);

	check(snapshot, GROUP_SITE, 0, "DRAM kv.#", 110, 10);
	check(snapshot, GROUP_SITE, 1, "L1 kv.0", 5, 1);
	check(snapshot, GROUP_SITE, 2, "DRAM w", 3, 1);
	snapshot_free(snapshot);
}

UNIT(stems_of_names)
{
	char stem[32];

	assert(strcmp(name_stem("a12b3", stem, sizeof(stem)), "a#b#") == 0);
	assert(strcmp(name_stem("plain", stem, 3), "pl") == 0);
	assert(name_stem_compare("a1", "a22") == 0 && name_stem_compare("a1", "a") > 0);
	assert(name_stem_compare(NULL, "a") < 0 && name_stem_compare("a", NULL) > 0);
	assert(name_stem_compare(NULL, NULL) == 0 && name_stem_compare("1a", "2b") < 0);
	assert(name_stem_hash("a1b") == name_stem_hash("a999b"));
	assert(name_stem_hash("a1b") != name_stem_hash("a1c"));
}

UNIT(an_alias_adds_no_bytes)
{
	struct snapshot *snapshot = start(0);

	add(snapshot, 0, CB, 100, "cb", NULL);
	snapshot->buffers[0].flags = ALIAS;
	check(snapshot, GROUP_NAME, 0, "cb", 0, 1);
	snapshot_free(snapshot);
}

UNIT(rows_without_memory_are_dropped)
{
	struct snapshot *snapshot = start(0);

	add(snapshot, 0, CB, 100, "cb", NULL);
	add(snapshot, 0, CB, 100, "kept", NULL);
	add(snapshot, 0, DRAM, 0, "empty", NULL);
	snapshot->buffers[0].flags = ALIAS;
	snapshot_part(snapshot, 0, 0)->memory[CB].buffers = 2;
	snapshot_drop_empty(snapshot);
	check(snapshot, GROUP_NAME, 0, "kept", 100, 1);
	assert(snapshot->buffer_count == 1);
	assert(snapshot_find_part(snapshot, 0, 0)->memory[CB].buffers == 1);
	assert(snapshot_find_part(snapshot, 0, 0)->memory[DRAM].buffers == 0);
	snapshot_free(snapshot);
}

UNIT(the_oldest_is_told)
{
	struct snapshot *snapshot = start(0);
	struct group_list list;

	add(snapshot, 0, DRAM, 300, "a", NULL);
	add(snapshot, 0, DRAM, 100, "a", NULL);
	assert(group_buffers(snapshot, GROUP_NAME, false, &list) == 0);
	assert(list.count == 1 && list.groups[0].oldest_ns == 1100);
	group_list_deinit(&list);
	snapshot_free(snapshot);
}

/* One sample: bytes of "a" and "b" of pid 10, 0 = none. */
static void sample(struct growth *growth, uint64_t time_ns, uint64_t a, uint64_t b)
{
	struct snapshot *snapshot = start(time_ns);

	if (a)
		add(snapshot, 0, DRAM, a, "a", "phase of this moment");
	if (b)
		add(snapshot, 0, DRAM, b, "b", NULL);
	assert(growth_add(growth, snapshot) == 0);
	snapshot_free(snapshot);
}

/* What @count samples tell, from the time 1000 on. */
static struct growth grown(const uint64_t (*samples)[2], size_t count)
{
	struct growth growth = GROWTH_NULL;

	for (size_t i = 0; i < count; i++)
		sample(&growth, 1000 * (i + 1), samples[i][0], samples[i][1]);
	growth_finish(&growth, false);
	return growth;
}

UNIT(a_group_that_keeps_growing_is_reported)
{
	static const uint64_t samples[][2] = {{10, 500}, {20, 400}, {20, 600}, {30, 700}};
	struct growth growth = grown(samples, ARRAY_SIZE(samples));

	assert(growth.samples == 4 && growth.first_ns == 1000 && growth.last_ns == 4000);
	assert(growth.count == 1 && strcmp(growth.sites[0].last.name, "a") == 0);
	assert(growth.sites[0].first_bytes == 10 && growth.sites[0].last.bytes == 30);
	assert(growth.sites[0].process.pid == 10);
	growth_deinit(&growth);
}

UNIT(one_line_that_names_its_buffers_by_number_grows)
{
	static const char *const stacks[] = {NULL, "a.c:3:main -> a.c:9:grow"};

	for (size_t i = 0; i < 2; i++) {
		struct growth growth = GROWTH_NULL;

		for (int moment = 1; moment <= 4; moment++) {
			struct snapshot *snapshot = start((uint64_t)moment);
			char name[16];

			for (int k = 0; k < moment; k++) {
				snprintf(name, sizeof(name), "kv.%d", k);
				add(snapshot, 0, DRAM, 10, name, NULL);
				snapshot->buffers[k].stack = testing_stack(stacks[i]);
			}
			assert(growth_add(&growth, snapshot) == 0);
			snapshot_free(snapshot);
		}
		growth_finish(&growth, false);
		assert(growth.count == 1 && growth.sites[0].last.names == 4);
		assert(growth.sites[0].first_bytes == 10 && growth.sites[0].last.bytes == 40);
		growth_deinit(&growth);
	}
}

UNIT(a_single_step_is_no_growth)
{
	static const uint64_t samples[][2] = {{10, 0}, {10, 0}, {900, 7}, {900, 7}};
	struct growth growth = grown(samples, ARRAY_SIZE(samples));

	assert(growth.count == 0);
	growth_deinit(&growth);
}

UNIT(a_new_group_grows_from_zero)
{
	static const uint64_t samples[][2] = {{0, 5}, {10, 5}, {20, 5}, {25, 0}};
	struct growth growth = grown(samples, ARRAY_SIZE(samples));

	assert(growth.count == 1 && strcmp(growth.sites[0].last.name, "a") == 0);
	assert(growth.sites[0].first_bytes == 0 && growth.sites[0].last.bytes == 25);
	growth_deinit(&growth);
}

UNIT(two_samples_need_one_step)
{
	static const uint64_t samples[][2] = {{10, 5}, {11, 5}};
	struct growth growth = grown(samples, ARRAY_SIZE(samples));

	assert(growth.count == 1);
	growth_deinit(&growth);
}
