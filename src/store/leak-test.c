/* SPDX-License-Identifier: Apache-2.0 */

/* Leak reports: what is stored can be read back, cut to its limits, and repetitions are counted. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
	ALIAS = 4,
};

UNIT(a_process_without_a_book_leaves_totals)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct ending ending = {.ended_ns = TESTING_START};
	struct snapshot_part *part = snapshot_part(snapshot, process, 0);
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	/* Counters of a book without buffers are no leak. */
	part->memory[DRAM].used = 700;
	store_put_leak(world.store, snapshot, process, &ending);
	snapshot->processes[process].books = 0;
	store_put_leak(world.store, snapshot, process, &ending);
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 1 && told.parts == 0 && told.buffers == 0);
	assert(told.leak.bytes == 700 && told.leak.buffers == 0);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_leak_report_comes_back_whole)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct ending ending = {.book = 1,
				.ended_ns = TESTING_START,
				.closed = true,
				.execed = true,
				.has_status = true,
				.status = 3 << 8};
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	testing_buffer(snapshot, process, L1, 0xfffffffffffff000u, "kv cache", "decode/layer 3");
	snapshot->buffers[0].size = UINT64_MAX;
	snapshot->buffers[0].refs = 3;
	snapshot->buffers[0].flags = ALIAS;
	snapshot->processes[process].container = "c0ffee";
	store_put_leak(world.store, snapshot, process, &ending);
	testing_flush(&world);

	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 1 && told.parts == 1 && told.buffers == 1);
	assert(told.leak.process.id.pid == 42 && told.leak.process.ns_pid == 43);
	assert(told.leak.process.user_id == 1000 && told.leak.process.id.start_ticks == 4200);
	assert(told.leak.process.start_ns == TESTING_START - 100 * TESTING_S);
	assert(strcmp(told.leak.process.comm, "train") == 0);
	assert(strcmp(told.leak.process.user, "me") == 0);
	assert(strcmp(told.leak.process.container, "c0ffee") == 0);
	assert(strcmp(told.leak.process.source, "book") == 0);
	assert(told.leak.ending.ended_ns == TESTING_START && told.leak.ending.closed);
	assert(told.leak.ending.execed);
	assert(told.leak.ending.has_status && told.leak.ending.status == 3 << 8);
	assert(told.leak.bytes == 0 && told.leak.buffers == 1 && told.leak.listed == 1);
	assert(told.part.type == L1 && strcmp(told.part.name, "kv cache") == 0);
	assert(!told.part.phase && strcmp(told.part.phases, "decode/layer 3") == 0);
	assert(told.part.oldest_ns == TESTING_START - TESTING_S);
	assert(told.buffer.address == 0xfffffffffffff000u && told.buffer.size == UINT64_MAX);
	assert(told.buffer.type == L1 && told.buffer.refs == 3 && told.buffer.flags == ALIAS);
	assert(told.buffer.thread == 7 && told.buffer.born_ns == TESTING_START - TESTING_S);
	assert(strcmp(told.buffer.name, "kv cache") == 0);
	assert(strcmp(told.buffer.phase, "decode/layer 3") == 0 && told.buffer_uid == 0xabc);

	/* The same after a restart, and as an incident. */
	testing_reopen(&world);
	assert(testing_told_leaks(&world, &testing_everything).buffers == 1);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && strcmp(told.incident.site.kind, "leak") == 0);
	assert(told.incident.site.count == 1 && told.incident.site.buffers == 1);
	assert(told.incident.process.id.pid == 42 &&
	       told.incident.example.address == 0xfffffffffffff000u);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_clean_end_is_no_leak)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");

	testing_init(&world);
	testing_open(&world);
	store_put_leak(world.store, snapshot, process, &(struct ending){0});
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 0 && testing_health(&world).dropped_records == 0);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_book_is_reported_once)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 42, "weights");
	testing_flush(&world);
	testing_reopen(&world);
	testing_put_leak(&world, 42, "weights");
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 1);
	assert(testing_told_incidents(&world, &testing_everything).incident.site.count == 1);
	testing_close(&world);
}

/* The clock was set and the process changed its name between two reads of the same book. */
UNIT(a_book_is_the_same_whatever_its_process_is_called)
{
	struct testing_world world;
	const char *const names[] = {"python3", "engine"};

	testing_init(&world);
	testing_open(&world);
	for (int i = 0; i < 2; i++) {
		struct snapshot *snapshot = testing_snapshot(TESTING_START);
		uint32_t process = testing_process(snapshot, 42, names[i]);

		snapshot->processes[process].start_ns += (uint64_t)i * 86400 * TESTING_S;
		testing_buffer(snapshot, process, 0, 0x1000, "weights", NULL);
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.book = 7, .ended_ns = TESTING_START});
		testing_flush(&world);
		snapshot_free(snapshot);
	}
	assert(testing_count_leaks(&world) == 1);
	testing_close(&world);
}

UNIT(leaks_of_one_call_site_are_counted)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 20; pid++) {
		testing_put_leak(&world, pid, "weights");
		testing_pass(&world, TESTING_S);
	}
	testing_flush(&world);

	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1);
	assert(told.incident.site.count == 20 && told.incident.site.buffers == 20);
	assert(told.incident.site.bytes == UINT64_C(20) * 4096);
	assert(told.incident.site.first_ns == TESTING_START);
	assert(told.incident.site.last_ns == TESTING_START + 19 * TESTING_S);
	assert(told.incident.process.id.pid == 20); /* the newest is the example */

	/* Every report is there with its buffers. */
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 20 && told.parts == 20 && told.buffers == 20);
	assert(told.leak.process.id.pid == 1 && told.leak.buffers == 1 && told.leak.listed == 1);
	told = testing_told_leaks(&world, &(struct store_filter){.pid = 20});
	assert(told.leaks == 1 && told.buffers == 1);
	testing_close(&world);
}

UNIT(without_a_name_the_phase_is_the_site)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	testing_buffer(snapshot, process, DRAM, 1, NULL, "a");
	testing_buffer(snapshot, process, DRAM, 2, NULL, "a");
	testing_buffer(snapshot, process, DRAM, 3, NULL, "b");
	testing_buffer(snapshot, process, L1, 3, NULL, "b");
	testing_buffer(snapshot, process, L1, 4, "n", "a");
	testing_buffer(snapshot, process, L1, 5, "n", "b");
	testing_buffer(snapshot, process, L1, 6, NULL, NULL);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = 5});
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 1 && told.parts == 5 && told.buffers == 7);
	assert(told.leak.bytes == UINT64_C(7) * 4096);
	assert(!told.leak.ending.has_status && !told.leak.ending.closed);
	assert(!told.leak.ending.execed);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_line_that_names_its_buffers_by_number_is_one_site)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t with_stack = 0; with_stack < 2; with_stack++) {
		struct snapshot *snapshot = testing_snapshot(TESTING_START);
		uint32_t process = testing_process(snapshot, 42 + with_stack, "train");
		char name[32];

		for (uint32_t i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "kv.%" PRIu32, i);
			testing_buffer(snapshot, process, DRAM, i * UINT64_C(4096), name, NULL);
			if (with_stack)
				snapshot->buffers[i].stack = testing_stack("a.c:1:f");
		}
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.ended_ns = 5 + with_stack});
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 2 && told.parts == 2 && told.leak.buffers == 100);
	assert(testing_count_sites(&world) == 2);
	testing_close(&world);
}

UNIT(hostile_text_is_only_text)
{
	static const char *const names[] = {
		"'); DROP TABLE leaks; --", "\xff\xfe\xc3",  "\xed\xa0\x80 half",
		"a\"b'c`d\\e%s%n",          "\x1b[2J\u202e", "",
	};
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct snapshot *snapshot = testing_snapshot(TESTING_START);
		uint32_t process = testing_process(snapshot, 100 + i, names[i]);
		/* Not snapshot_text(), which sanitizes: the store must not rely on that. */
		struct snapshot_buffer buffer = {.process = process, .size = 1, .name = names[i]};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.ended_ns = TESTING_START});
		snapshot_free(snapshot);
	}
	testing_flush(&world);
	assert(testing_health(&world).refused == 0);
	assert(testing_count_leaks(&world) == sizeof(names) / sizeof(names[0]));
	told = testing_told_leaks(&world, &(struct store_filter){.pid = 100});
	assert(strcmp(told.buffer.name, names[0]) == 0);
	assert(strcmp(told.leak.process.comm, names[0]) == 0);
	told = testing_told_leaks(&world, &(struct store_filter){.pid = 101});
	assert(strcmp(told.buffer.name, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") == 0);
	assert(!testing_told_leaks(&world, &(struct store_filter){.pid = 105}).buffer.name);
	testing_close(&world);
}

UNIT(pages_follow_each_other)
{
	struct testing_world world;
	struct store_filter filter = {.limit = 7};
	struct store_reader *reader;
	struct store_cursor next;
	struct testing_told told = {0};
	struct store_leak_rows leaks = {.context = &told, .leak = testing_told_leak};
	struct store_incident_rows sites = {.context = &told, .incident = testing_told_incident};
	uint32_t pid = 50;
	char name[16];

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 1; i <= 50; i++) {
		snprintf(name, sizeof(name), "%" PRIu32, i);
		testing_put_leak(&world, i, name);
	}
	testing_flush(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	do {
		told.leaks = 0;
		assert(store_query_leaks(reader, &filter, &leaks, &next) == 0);
		assert(told.leaks == (pid > 7 ? 7 : pid) && next.more == (pid > 7));
		pid -= (uint32_t)told.leaks;
		assert(told.leak.process.id.pid == pid + 1);
		filter.after = next;
		testing_put_leak(&world, 1000 + pid, "later"); /* appears on no later page */
		testing_flush(&world);
	} while (next.more);
	filter.after = (struct store_cursor){0};
	do {
		assert(store_query_incidents(reader, &filter, &sites, &next) == 0);
		filter.after = next;
	} while (next.more);
	assert(told.incidents == 51);
	store_reader_close(reader);
	testing_close(&world);
}

UNIT(one_users_leaks_do_not_evict_those_of_others)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 1, "train");
	const uint32_t user = 2000;
	struct store_filter other = {.sees = testing_sees(&user)};

	testing_init(&world);
	testing_open(&world);
	testing_set_user(snapshot, process, 2000);
	testing_buffer(snapshot, process, DRAM, 1, "weights", NULL);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	for (uint32_t pid = 2; pid < STORE_LEAKS_MAX + 500; pid++) {
		testing_put_leak(&world, pid, "weights");
		if (pid % 1000 == 0)
			testing_flush(&world);
	}
	testing_flush(&world);
	testing_pass(&world, 20 * TESTING_S);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	/* The last one may have been added after the check. */
	assert(testing_count_leaks(&world) <= STORE_LEAKS_MAX + 1);
	assert(testing_count_leaks(&world) >= STORE_LEAKS_MAX);
	assert(testing_told_leaks(&world, &other).buffers == 1);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_call_site_has_its_largest_names_and_how_many_there_are)
{
	static const char first[] = "413696 101 kv.7\x1e"
				    "8192 2 \x1e"
				    "4096 1 kv.0\x1e";
	struct testing_world world;
	struct snapshot *snapshot;
	struct ending ending = {.book = 1, .ended_ns = 1};
	struct testing_told told;
	uint32_t process;
	char name[32];
	size_t separators = 0;

	testing_init(&world);
	testing_open(&world);
	snapshot = testing_snapshot(world.real_ns);
	process = testing_process(snapshot, 42, "train");
	for (uint64_t i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "kv.%u", i < 100 ? 7 : (unsigned int)i - 100);
		testing_buffer(snapshot, process, L1, 0x1000 * (i + 1), i < 198 ? name : NULL,
			       NULL);
	}
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		snapshot->buffers[i].stack = testing_stack("a.c:1:take @ app");
	store_put_leak(world.store, snapshot, process, &ending);
	snapshot_free(snapshot);
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	/* kv.0 to kv.97, of which one also has the first hundred, and those without a name. */
	assert(told.parts == 1 && told.part.buffers == 200 && told.part.name_count == 99);
	assert(strncmp(told.part.names, first, sizeof(first) - 1) == 0);
	for (const char *at = told.part.names; (at = strchr(at, STORE_PARTS_SEPARATOR)); at++)
		separators++;
	assert(separators + 1 == STORE_NAMES_MAX);
	assert(testing_told_incidents(&world, &testing_everything).incidents == 1);
	testing_close(&world);
}

/* A name may contain anything: it must not look like two. */
UNIT(a_name_with_a_separator_stays_one_name)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1,
			 "a\x1e"
			 "9 9 b");
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.part.name_count == 1 && strcmp(told.part.names, "4096 1 a?9 9 b") == 0);
	testing_close(&world);
}
