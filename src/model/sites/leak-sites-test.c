/* SPDX-License-Identifier: Apache-2.0 */

/* What is added to which row, and how many rows there are. */

#include "model/sites/leak-sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

static struct leak_sites *sites_new(void)
{
	struct leak_sites *sites = calloc(1, sizeof(*sites));

	assert(sites);
	return sites;
}

static struct snapshot *snapshot_of(uint32_t user)
{
	struct snapshot_process process = {
		.id.pid = 7, .user_id = user, .source = "book", .books = 1};
	struct snapshot *snapshot = snapshot_new(1000);
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0 && index == 0);
	assert(snapshot_part(snapshot, 0, 0));
	return snapshot;
}

static void add(struct snapshot *snapshot, uint8_t type, uint64_t size, const char *name,
		const char *stack)
{
	struct snapshot_buffer buffer = {
		.type = type, .size = size, .refs = 1, .name = name, .stack = testing_stack(stack)};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static const struct leak_site *find(const struct leak_sites *sites, const char *site, uint32_t type)
{
	for (size_t i = 0; i < sites->count; i++) {
		if (sites->rows[i].type == type && strcmp(sites->rows[i].site, site) == 0)
			return &sites->rows[i];
	}
	return NULL;
}

/* The bytes of a row, which must be there. */
static uint64_t bytes_of(const struct leak_sites *sites, const char *site, uint32_t type)
{
	const struct leak_site *row = find(sites, site, type);

	assert(row);
	return row ? row->bytes : 0;
}

UNIT(leaks_are_added_up_by_site_and_type)
{
	struct snapshot *snapshot = snapshot_of(1);
	struct leak_sites *sites = sites_new();
	const struct leak_site *row;

	add(snapshot, TYPES_DRAM, 10, "a", "m.py:1:main -> m.py:5:load");
	add(snapshot, TYPES_DRAM, 20, "b", "x.py:9:other -> m.py:5:load");
	add(snapshot, TYPES_L1, 40, NULL, "m.py:1:main -> m.py:5:load");
	add(snapshot, TYPES_DRAM, 80, "kv.1", NULL);
	add(snapshot, TYPES_DRAM, 80, "kv.2", NULL);
	leak_sites_add(sites, snapshot, 0);
	assert(sites->count == 3);
	row = find(sites, "load (m.py:5)", TYPES_DRAM);
	assert(row && row->bytes == 30 && row->buffers == 2);
	row = find(sites, "load (m.py:5)", TYPES_L1);
	assert(row && row->bytes == 40 && row->buffers == 1);
	row = find(sites, "kv.#", TYPES_DRAM);
	assert(row && row->bytes == 160 && row->buffers == 2);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		assert(!*sites->others[type].site);
	free(sites);
	snapshot_free(snapshot);
}

UNIT(buffers_of_other_processes_and_unknown_types_do_not_count)
{
	struct snapshot *snapshot = snapshot_of(1);
	struct snapshot_process other = {.id.pid = 8, .source = "book", .books = 1};
	struct snapshot_buffer buffer = {.type = TYPES_DRAM, .size = 5, .refs = 1, .name = "other"};
	struct leak_sites *sites = sites_new();
	uint32_t index;

	assert(snapshot_add_process(snapshot, &other, &index) == 0 && index == 1);
	buffer.process = index;
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	add(snapshot, BOOK_TYPES, 7, "unknown", NULL);
	add(snapshot, BOOK_TYPES - 1, 9, "last", NULL);
	add(snapshot, TYPES_DRAM, 10, "own", NULL);
	leak_sites_add(sites, snapshot, 0);
	assert(sites->count == 2 && bytes_of(sites, "own", TYPES_DRAM) == 10);
	assert(bytes_of(sites, "last", BOOK_TYPES - 1) == 9);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		assert(!*sites->others[type].site);
	free(sites);
	snapshot_free(snapshot);
}

UNIT(without_stack_and_name_the_phase_is_the_site)
{
	static const char *const phases[] = {"load", "train", NULL, "load"};
	struct snapshot *snapshot = snapshot_of(1);
	struct leak_sites *sites = sites_new();

	for (size_t i = 0; i < 4; i++) {
		struct snapshot_buffer buffer = {
			.type = TYPES_DRAM, .size = 10, .refs = 1, .phase = phases[i]};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	leak_sites_add(sites, snapshot, 0);
	assert(sites->count == 3);
	assert(bytes_of(sites, "in load", TYPES_DRAM) == 20);
	assert(bytes_of(sites, "in train", TYPES_DRAM) == 10);
	assert(bytes_of(sites, "", TYPES_DRAM) == 10);
	free(sites);
	snapshot_free(snapshot);
}

UNIT(what_is_not_listed_is_other)
{
	struct snapshot *snapshot = snapshot_of(1);
	struct leak_sites *sites = sites_new();
	struct snapshot_part *part = snapshot_part(snapshot, 0, 0);
	const struct leak_site *row;

	add(snapshot, TYPES_DRAM, 10, "a", NULL);
	add(snapshot, TYPES_L1, 10, "b", NULL);
	part->memory[TYPES_DRAM].used = 60;
	part->memory[TYPES_DRAM].buffers = 3;
	part->memory[TYPES_L1].used = 10; /* all of it is listed */
	part = snapshot_part(snapshot, 0, 1);
	part->memory[TYPES_DRAM].used = 40;
	part->memory[TYPES_DRAM].buffers = 1;
	leak_sites_add(sites, snapshot, 0);
	row = find(sites, "a", TYPES_DRAM);
	assert(row && row->bytes == 10 && !*sites->others[TYPES_L1].site);
	assert(strcmp(sites->others[TYPES_DRAM].site, LEAK_SITES_OTHER) == 0);
	assert(sites->others[TYPES_DRAM].bytes == 90 && sites->others[TYPES_DRAM].buffers == 3);
	free(sites);
	snapshot_free(snapshot);
}

/* As many sites as @count, of one byte each, of one process. */
static void leak_many(struct leak_sites *to, uint32_t user, size_t count)
{
	struct snapshot *snapshot = snapshot_of(user);
	struct leak_sites *sites = sites_new();

	for (size_t i = 0; i < count; i++) {
		char stack[32];

		(void)snprintf(stack, sizeof(stack), "a.c:%zu:u%u", i + 1, user);
		add(snapshot, TYPES_DRAM, 1, NULL, stack);
	}
	leak_sites_add(sites, snapshot, 0);
	leak_sites_merge(to, sites);
	free(sites);
	snapshot_free(snapshot);
}

UNIT(a_user_cannot_take_all_rows)
{
	struct leak_sites *all = sites_new();
	const struct leak_site *row;
	uint64_t sum = 0;

	leak_many(all, 1, 1000);
	assert(all->count == LEAK_SITES_MAX / 2);
	assert(all->others[TYPES_DRAM].bytes == 1000 - LEAK_SITES_MAX / 2);
	leak_many(all, 2, 10);
	assert(find(all, "u2 (a.c:10)", TYPES_DRAM));
	leak_many(all, 1, 3); /* rows that are there go on */
	row = find(all, "u1 (a.c:3)", TYPES_DRAM);
	assert(row && row->bytes == 2);
	for (size_t i = 0; i < all->count; i++)
		sum += all->rows[i].bytes;
	assert(sum + all->others[TYPES_DRAM].bytes == 1013);
	free(all);
}

/* More buffers are listed than counted: their number does not go below zero. */
UNIT(the_number_of_others_is_at_least_zero)
{
	struct snapshot *snapshot = snapshot_of(1);
	struct leak_sites *sites = sites_new();
	struct leak_sites *sum = sites_new();
	struct snapshot_part *part = snapshot_part(snapshot, 0, 0);

	add(snapshot, TYPES_DRAM, 10, "a", NULL);
	add(snapshot, TYPES_DRAM, 10, "a", NULL);
	part->memory[TYPES_DRAM].used = 21;
	part->memory[TYPES_DRAM].buffers = 1;
	leak_sites_add(sites, snapshot, 0);
	assert(sites->others[TYPES_DRAM].bytes == 1 && sites->others[TYPES_DRAM].buffers == 0);
	leak_sites_merge(sum, sites);
	leak_sites_merge(sum, sites);
	assert(sum->others[TYPES_DRAM].bytes == 2 && sum->others[TYPES_DRAM].type == TYPES_DRAM);
	assert(!*sum->others[TYPES_L1].site && sum->count == 1 && sum->rows[0].buffers == 4);
	free(sum);
	free(sites);
	snapshot_free(snapshot);
}

UNIT(a_site_called_other_is_one_of_the_others)
{
	struct snapshot *snapshot = snapshot_of(1);
	struct leak_sites *sites = sites_new();

	add(snapshot, TYPES_DRAM, 10, LEAK_SITES_OTHER, NULL);
	leak_sites_add(sites, snapshot, 0);
	assert(sites->count == 0 && sites->others[TYPES_DRAM].bytes == 10);
	free(sites);
	snapshot_free(snapshot);
}
