/* SPDX-License-Identifier: Apache-2.0 */

/* Incidents: stored ones can be read back, repetitions are counted, and users are kept apart. */

#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
};

static struct snapshot_incident double_free(uint32_t process, uint64_t count)
{
	return (struct snapshot_incident){
		.kind = "double_free",
		.process = process,
		.type = L1,
		.has_address = true,
		.address = 0x8000,
		.size = 64,
		.largest_free = UINT64_MAX,
		.count = count,
		.time_ns = TESTING_START,
		.last_ns = TESTING_START + count,
		.first = {.known = true,
			  .time_ns = 5,
			  .size = 64,
			  .thread = 11,
			  .name = "weights",
			  .phase = "load",
			  .stack = testing_stack("a.c:1:f @ app")},
		.second = {.known = true,
			   .time_ns = 6,
			   .thread = 12,
			   .stack = testing_stack("a.c:2:g @ app")},
	};
}

static void put_double_free(struct testing_world *world, uint32_t pid, uint32_t uid, uint64_t count)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct snapshot_incident incident = double_free(process, count);

	testing_set_user(snapshot, process, uid);
	store_put_incident(world->store, snapshot, &incident);
	snapshot_free(snapshot);
}

/* Allocators hand out the same addresses, and one line frees what they had twice. */
UNIT(incidents_of_two_spaces_are_two)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t space = 0; space < 3; space++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);
		struct snapshot_incident incident =
			double_free(testing_process(snapshot, 42, "train"), 1);

		incident.space = space;
		store_put_incident(world.store, snapshot, &incident);
		snapshot_free(snapshot);
		testing_flush(&world);
	}
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 3);
	assert(told.incident.example.space == 2);
	testing_close(&world);
}

/* One line that hits two chips is one site; which chips, each process's own too, stays known. */
UNIT(an_incident_on_two_devices_names_both)
{
	static const uint32_t devices[] = {3, 1, 3, 0}, pids[] = {42, 42, 42, 43};
	const struct store_filter first = {.pid = 42};
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (size_t i = 0; i < 4; i++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);
		struct snapshot_incident incident =
			double_free(testing_process(snapshot, pids[i], "train"), i + 1);

		incident.device = devices[i];
		store_put_incident(world.store, snapshot, &incident);
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.example.device == 0);
	assert(strcmp(told.incident.site.devices, "0,1,3") == 0);
	told = testing_told_incidents(&world, &first);
	assert(told.incidents == 1 && strcmp(told.incident.site.devices, "1,3") == 0);
	testing_close(&world);
}

/* Closing a device is right: the line that did not free its buffers is the site. */
UNIT(what_was_held_at_a_close_goes_by_who_allocated_it)
{
	static const char *const stacks[] = {"a.c:1:f @ app", "a.c:9:k @ app"};
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (size_t i = 0; i < 2; i++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);
		struct snapshot_incident incident =
			double_free(testing_process(snapshot, 42, "train"), 1);

		incident.kind = "held_at_close";
		incident.first.stack = testing_stack(stacks[i]);
		store_put_incident(world.store, snapshot, &incident);
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 2 && told.incident.site.count == 1);
	testing_close(&world);
}

UNIT(an_incident_comes_back_whole)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 42, 1000, 3);
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.holders == 0 && told.parts == 0);
	assert(strcmp(told.incident.site.kind, "double_free") == 0);
	assert(told.incident.site.type == L1 && told.incident.site.count == 3);
	assert(!told.incident.site.name && !told.incident.site.phase);
	assert(strcmp(testing_line(told.incident.site.stack), "a.c:2:g @ app") == 0);
	assert(strcmp(told.incident.example.first.name, "weights") == 0);
	assert(told.incident.example.address == 0x8000 && told.incident.example.has_address);
	assert(told.incident.example.size == 64 && told.incident.example.count == 3);
	assert(told.incident.example.largest_free == UINT64_MAX);
	assert(told.incident.example.time_ns == TESTING_START);
	assert(told.incident.example.last_ns == TESTING_START + 3);
	assert(told.incident.example.first.known && told.incident.example.first.thread == 11);
	assert(told.incident.example.first.size == 64 && told.incident.example.first.time_ns == 5);
	assert(strcmp(told.incident.example.first.phase, "load") == 0);
	assert(told.incident.example.second.known && told.incident.example.second.thread == 12);
	assert(!told.incident.example.second.name && told.incident.device_uid == 0xabc);
	assert(strcmp(testing_line(told.incident.example.first.stack), "a.c:1:f @ app") == 0);
	assert(strcmp(testing_line(told.incident.example.second.stack), "a.c:2:g @ app") == 0);
	testing_close(&world);
}

UNIT(an_incident_that_goes_on_is_counted_once)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 42, 1000, 3);
	put_double_free(&world, 42, 1000, 3);
	put_double_free(&world, 42, 1000, 5);
	testing_flush(&world);
	testing_reopen(&world);
	put_double_free(&world, 42, 1000, 5);
	put_double_free(&world, 43, 1000, 2); /* another process: added to the count */
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 7);
	assert(told.incident.process.id.pid == 43 && told.incident.example.count == 2);
	told = testing_told_incidents(&world, &(struct store_filter){.pid = 42});
	assert(told.incidents == 1 && told.incident.example.count == 5);
	assert(testing_told_incidents(&world, &(struct store_filter){.pid = 44}).incidents == 0);
	testing_close(&world);
}

/* Puts one of @pid with another name, address or stack. */
static void put_changed(struct testing_world *world, uint32_t pid, const char *name,
			uint64_t address, const char *stack, uint64_t key)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	struct snapshot_incident incident = double_free(testing_process(snapshot, pid, "train"), 1);

	snapshot->processes[0].user_id = 1000;
	incident.address = address;
	incident.first.name = name;
	incident.second.stack = testing_stack(stack);
	incident.second.stack_key = key;
	store_put_incident(world->store, snapshot, &incident);
	snapshot_free(snapshot);
}

UNIT(one_line_is_one_site_whatever_its_buffers_are_called)
{
	struct testing_world world;
	struct testing_told told;
	char name[32];

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), i % 2 ? "kv.%u" : "weights.%u", i);
		put_changed(&world, 42, name, 0x1000 * (i + 1), "a.c:2:g @ app", 7);
	}
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 100);
	assert(strcmp(told.incident.example.first.name, "kv.99") == 0); /* the last one */
	testing_close(&world);
}

UNIT(two_lines_are_two_sites_though_their_buffers_have_one_name)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	put_changed(&world, 42, "kv", 0x1000, "a.c:2:g @ app", 7);
	put_changed(&world, 42, "kv", 0x1000, "a.c:3:g @ app", 8);
	testing_flush(&world);
	assert(testing_told_incidents(&world, &testing_everything).incidents == 2);
	testing_close(&world);
}

UNIT(a_stack_that_gets_its_names_later_is_not_counted_again)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	put_changed(&world, 42, "kv", 0x1000, "app+0x12 @ app", 7);
	put_changed(&world, 42, "kv", 0x1000, "a.c:2:g @ app", 7);
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 1);
	testing_close(&world);
}

UNIT(without_stacks_names_that_differ_in_numbers_are_one_site)
{
	struct testing_world world;
	struct snapshot *snapshot;
	struct snapshot_incident incident;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint64_t i = 0; i < 3; i++) {
		static const char *const names[] = {"kv.1", "kv.2", "weights"};

		snapshot = testing_snapshot(world.real_ns);
		incident = double_free(testing_process(snapshot, 42, "train"), 1);
		incident.first.stack = incident.second.stack = NULL;
		incident.first.name = names[i];
		store_put_incident(world.store, snapshot, &incident);
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 2);
	testing_close(&world);
}

/* Two addresses in one process, and one in another: whose are they, and since when? */
UNIT(a_process_has_its_own_count_and_times)
{
	struct testing_world world;
	struct testing_told told;
	struct snapshot *snapshot;
	struct snapshot_incident incident;

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 42, 1000, 3);
	testing_flush(&world);
	snapshot = testing_snapshot(world.real_ns);
	incident = double_free(testing_process(snapshot, 42, "train"), 4);
	incident.address = 0x9000;
	incident.time_ns = TESTING_START + 100;
	incident.last_ns = TESTING_START + 200;
	testing_set_user(snapshot, 0, 1000);
	store_put_incident(world.store, snapshot, &incident);
	snapshot_free(snapshot);
	put_double_free(&world, 43, 1000, 50);
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incident.site.count == 57 && told.incident.site.processes == 2);
	told = testing_told_incidents(&world, &(struct store_filter){.pid = 42});
	assert(told.incident.own_count == 7 && told.incident.example.address == 0x9000);
	assert(told.incident.example.time_ns == TESTING_START);
	assert(told.incident.example.last_ns == TESTING_START + 200);
	testing_close(&world);
}

UNIT(a_process_has_its_own_share_of_a_leaking_call_site)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 44, "weights");
	testing_put_leak(&world, 45, "weights");
	testing_flush(&world);
	told = testing_told_incidents(&world, &(struct store_filter){.pid = 44});
	assert(told.incidents == 1 && told.incident.site.processes == 2);
	assert(told.incident.own_buffers * 2 == told.incident.site.buffers);
	assert(told.incident.own_bytes * 2 == told.incident.site.bytes);
	testing_close(&world);
}

UNIT(those_of_other_users_are_counted)
{
	static const uint32_t uids[] = {1000, 1001};
	const struct store_sees one = testing_sees(&uids[0]), other = testing_sees(&uids[1]);
	struct testing_world world;
	struct store_reader *reader;
	uint64_t count;

	testing_init(&world);
	testing_open(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	assert(store_query_other_incidents(reader, &one, &count) == 0 && count == 0);
	put_double_free(&world, 42, 1000, 3);
	put_double_free(&world, 43, 1001, 4);
	testing_put_leak(&world, 44, "weights");
	testing_flush(&world);
	assert(store_query_other_incidents(reader, &other, &count) == 0 && count == 2);
	assert(store_query_other_incidents(reader, &one, &count) == 0 && count == 1);
	assert(store_query_other_leaks(reader, &one, &count) == 0 && count == 0);
	assert(store_query_other_leaks(reader, &other, &count) == 0 && count == 1);
	store_reader_close(reader);
	testing_close(&world);
}

UNIT(incidents_of_names_that_differ_in_numbers_are_one)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 2; i++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);
		uint32_t process = testing_process(snapshot, 42, "train");
		struct snapshot_incident incident = double_free(process, 1);

		incident.first.name = i ? "kv.1" : "kv.20";
		incident.address += i;
		store_put_incident(world.store, snapshot, &incident);
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 2);
	assert(strcmp(told.incident.example.first.name, "kv.1") == 0);
	testing_close(&world);
}

UNIT(users_are_told_apart)
{
	struct testing_world world;
	uint32_t me = 1001;
	struct store_filter mine = {.sees = testing_sees(&me)};

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 42, 1000, 3);
	put_double_free(&world, 43, 1001, 4);
	testing_put_leak(&world, 44, "weights");
	testing_flush(&world);
	assert(testing_told_incidents(&world, &testing_everything).incidents == 3);
	assert(testing_told_incidents(&world, &mine).incidents == 1);
	assert(testing_told_incidents(&world, &mine).incident.site.count == 4);
	assert(testing_told_leaks(&world, &mine).leaks == 0);
	me = 1000;
	assert(testing_told_leaks(&world, &mine).leaks == 1);
	mine.kind = "leak";
	assert(testing_told_incidents(&world, &mine).incidents == 1);
	testing_close(&world);
}

UNIT(one_users_incidents_do_not_evict_the_counts_of_others)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	put_double_free(&world, 42, 1000, 3); /* the oldest */
	put_double_free(&world, 43, 1001, 3);
	testing_flush(&world);
	testing_sql(
		&world,
		"INSERT INTO seen WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
		" LIMIT 50500) SELECT 1000 + i / 10, site, kind, type, device, i, size, what, count"
		" FROM seen JOIN n WHERE process IN (SELECT id FROM processes WHERE uid = 1001)");
	testing_pass(&world, 20 * TESTING_S);
	put_double_free(&world, 42, 1000, 3);
	testing_flush(&world);
	put_double_free(&world, 42, 1000, 3); /* after the check */
	testing_flush(&world);
	assert(testing_sql(&world, "SELECT count(*) FROM seen") <= STORE_SEEN_MAX);
	assert(testing_sql(&world, "SELECT count(*) FROM seen") > STORE_SEEN_MAX - 20);
	assert(testing_told_incidents(&world, &(struct store_filter){.pid = 42})
		       .incident.site.count == 3);
	testing_close(&world);
}

/* Root of any namespaces with that path in their name. */
static bool is_in_path(const void *context, uint32_t uid, const char *namespaces)
{
	return uid == 1000 && strcmp(namespaces, context) == 0;
}

static void put_in(struct testing_world *world, uint32_t pid, const char *namespaces)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct snapshot_incident incident = double_free(process, 1);

	snapshot->processes[process].namespaces = namespaces;
	store_put_incident(world->store, snapshot, &incident);
	testing_buffer(snapshot, process, 0, 0x1000, "weights", NULL);
	store_put_leak(world->store, snapshot, process,
		       &(struct ending){.book = pid, .ended_ns = TESTING_START});
	snapshot_free(snapshot);
}

/* The same user, program and call site in two containers are two, and neither is the host's. */
UNIT(namespaces_are_told_apart)
{
	static const char *const where[] = {"", "|b/1.5", "|b/2.7", "?"};
	struct testing_world world;
	struct store_reader *reader;
	uint64_t hidden = 0;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 3; i++)
		put_in(&world, 42 + i, where[i]);
	put_in(&world, 45, NULL);
	testing_flush(&world);
	for (uint32_t i = 0; i < 4; i++) {
		const struct store_filter filter = {.kind = "double_free",
						    .sees = {where[i], is_in_path}};
		struct testing_told told = testing_told_incidents(&world, &filter);

		assert(told.incidents == 1 && told.incident.process.id.pid == 42 + i);
		assert(told.incident.site.count == 1 && told.incident.site.user_id == 1000);
		told = testing_told_leaks(&world, &filter);
		assert(told.leaks == 1 && told.leak.process.id.pid == 42 + i);
		assert(store_reader_open(world.store, &reader) == 0);
		assert(store_query_other_leaks(reader, &filter.sees, &hidden) == 0 && hidden == 3);
		store_reader_close(reader);
	}
	assert(testing_told_leaks(&world, &testing_everything).leaks == 4);
	/* Owners of nothing are forgotten; those of something are not. */
	testing_sql(&world, "INSERT INTO owners VALUES(4294967400, 7, 'x')");
	testing_pass(&world, 1000 * TESTING_S);
	testing_put_leak(&world, 50, "weights");
	testing_flush(&world);
	assert(testing_sql(&world, "SELECT count(*) FROM owners") == 3);
	testing_close(&world);
}

UNIT(numbers_beyond_all_reason_do_not_overflow)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 4; pid++) {
		struct snapshot *snapshot = testing_snapshot(TESTING_START);
		uint32_t process = testing_process(snapshot, pid, "train");
		struct snapshot_incident incident = double_free(process, UINT64_MAX);

		testing_buffer(snapshot, process, DRAM, UINT64_MAX, "x", NULL);
		snapshot->buffers[0].size = UINT64_MAX;
		snapshot->buffers[0].born_ns = UINT64_MAX;
		incident.last_ns = UINT64_MAX;
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.ended_ns = TESTING_START});
		store_put_incident(world.store, snapshot, &incident);
		testing_memory(snapshot, process, 0, DRAM, UINT64_MAX, UINT64_MAX);
		assert(snapshot_finish(snapshot) == 0);
		store_put_sample(world.store, snapshot);
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	assert(testing_health(&world).refused == 0 && testing_health(&world).written == 12);
	assert(testing_told_incidents(&world, &(struct store_filter){.kind = "leak"})
		       .incident.site.bytes == (UINT64_C(1) << 62) - 1);
	testing_close(&world);
}
