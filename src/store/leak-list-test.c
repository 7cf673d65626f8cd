/* SPDX-License-Identifier: Apache-2.0 */

/* The lists of buffers in leak reports: how long they may be, how they are read, and when they go. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
};

/* A process that left @count buffers of 3000 names and 7 phases. */
static struct snapshot *huge_leak(uint32_t count, uint32_t *ret_process)
{
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	char name[32], phase[32];

	for (uint32_t i = 0; i < count; i++) {
		/* Numbers would make them one site. */
		snprintf(name, sizeof(name), "site %c%c%c", 'a' + (char)(i % 15),
			 'a' + (char)(i / 15 % 20), 'a' + (char)(i / 300 % 10));
		snprintf(phase, sizeof(phase), "layer %" PRIu32, i % 7);
		testing_buffer(snapshot, process, DRAM, i * UINT64_C(4096), name, phase);
		snapshot->buffers[i].size_per_bank = i % 5;
		snapshot->buffers[i].banks = i % 3;
	}
	*ret_process = process;
	return snapshot;
}

/* Where a row is expected to be in the list. */
struct huge_told {
	const struct snapshot *snapshot;
	uint64_t at;
	uint64_t stop; /* so many rows make a page; 0 = one page */
	uint64_t rows; /* on this page */
	uint64_t leaks, offset;
};

static int huge_told_leak(void *context, const struct store_leak *leak)
{
	struct huge_told *told = context;

	told->leaks++;
	told->offset = leak->offset;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int huge_told_buffer(void *context, const struct snapshot_buffer *buffer,
			    uint64_t device_uid)
{
	struct huge_told *told = context;
	const struct snapshot_buffer *put = &told->snapshot->buffers[told->at];

	if (told->stop && told->rows == told->stop)
		return 1;
	assert(told->at < told->snapshot->buffer_count);
	assert(buffer->address == put->address && buffer->size == put->size);
	assert(buffer->type == put->type && buffer->refs == put->refs && device_uid == 0xabc);
	assert(buffer->born_ns == put->born_ns && buffer->thread == put->thread);
	assert(buffer->size_per_bank == put->size_per_bank && buffer->banks == put->banks);
	assert(same_text(buffer->name, put->name) && same_text(buffer->phase, put->phase));
	told->at++;
	told->rows++;
	return 0;
}

UNIT(a_report_keeps_a_hundred_thousand_buffers)
{
	struct testing_world world;
	uint32_t process;
	struct snapshot *snapshot = huge_leak(100000, &process);
	struct huge_told told = {.snapshot = snapshot};
	struct store_leak_rows rows = {&told, huge_told_leak, NULL, huge_told_buffer};
	struct store_reader *reader;
	struct store_cursor next;

	testing_init(&world);
	testing_open(&world);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_flush(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	assert(store_query_leaks(reader, &testing_everything, &rows, &next) == 0);
	assert(!next.more && told.at == 100000 && told.leaks == 1);
	store_reader_close(reader);
	/* Packed: far less than the 16 bytes of address and size alone. */
	assert(testing_sql(&world, "SELECT sum(bytes) FROM leak_chunks") < 1000000);
	assert(testing_told_leaks(&world, &testing_everything).leak.listed == 100000);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(pages_end_within_a_report)
{
	struct testing_world world;
	uint32_t process;
	struct snapshot *snapshot = huge_leak(5000, &process);
	struct huge_told told = {.snapshot = snapshot, .stop = 700};
	struct testing_told parts = {0};
	struct store_leak_rows rows = {&told, huge_told_leak, NULL, huge_told_buffer};
	struct store_filter filter = {.limit = 10};
	struct store_reader *reader;
	struct store_cursor next;

	testing_init(&world);
	testing_open(&world);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_put_leak(&world, 43, "newer");
	testing_flush(&world);
	filter.pid = 42;
	assert(store_reader_open(world.store, &reader) == 0);
	do {
		told.rows = told.leaks = 0;
		assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
		assert(told.leaks == 1 && told.offset == told.at - told.rows);
		assert(next.more == (told.at < 5000));
		filter.after = next;
	} while (next.more);
	assert(told.at == 5000);
	/* The end of a page may be the end of a report, too. */
	filter = (struct store_filter){.limit = 1};
	rows = (struct store_leak_rows){&parts, testing_told_leak, NULL, NULL};
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	assert(next.more && parts.leak.process.id.pid == 43);
	filter.after = next;
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	assert(!next.more && parts.leak.process.id.pid == 42 && parts.leak.offset == 0);
	store_reader_close(reader);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_huge_leak_is_cut)
{
	struct testing_world world;
	const uint32_t count = STORE_LEAK_BUFFERS_MAX + 5000;
	uint32_t process;
	struct snapshot *snapshot = huge_leak(count, &process);
	struct testing_told told;

	testing_init(&world);
	testing_open(&world);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 1 && told.leak.buffers == count);
	assert(told.leak.bytes == count * UINT64_C(4096));
	assert(told.parts == STORE_LEAK_SITES_MAX && told.buffers == STORE_LEAK_BUFFERS_MAX);
	assert(told.leak.listed == STORE_LEAK_BUFFERS_MAX);
	assert(testing_health(&world).cut > 0 && testing_health(&world).refused == 0);
	/* Each of the sites has an example. */
	assert(testing_count_sites(&world) == STORE_LEAK_SITES_MAX);
	snapshot_free(snapshot);
	testing_close(&world);
}

/* 100,000 names of a KiB that do not compress. */
UNIT(a_list_takes_its_share_of_the_queue_at_most)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct testing_told told;
	uint64_t seed = 1;
	char name[1024];

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 20000; i++) {
		for (size_t k = 0; k < sizeof(name) - 1; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			name[k] = (char)('0' + (seed >> 33) % 64);
		}
		name[sizeof(name) - 1] = '\0';
		testing_buffer(snapshot, process, DRAM, i, name, NULL);
	}
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_put_leak(&world, 43, "of another process");
	testing_flush(&world);
	assert(testing_health(&world).dropped_records == 0);
	assert(testing_sql(&world, "SELECT sum(bytes) FROM leak_chunks") <= 4 << 20);
	told = testing_told_leaks(&world, &(struct store_filter){.pid = 42});
	assert(told.leak.buffers == 20000 && told.leak.listed == told.buffers);
	assert(told.buffers > 1000 && told.buffers < 20000);
	snapshot_free(snapshot);
	testing_close(&world);
}

/* While the queue is rather full, a report comes without its list instead of not at all. */
UNIT(a_full_queue_costs_the_list_before_the_report)
{
	struct testing_world world;
	uint32_t process;
	struct snapshot *snapshot = huge_leak(50000, &process);
	struct testing_told told;

	testing_init(&world);
	world.config.queue_bytes = 1200000; /* a user alone gets half */
	testing_open(&world);
	testing_hold(&world, true);
	for (uint64_t book = 1; book <= 3; book++)
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.book = book, .ended_ns = TESTING_START});
	testing_hold(&world, false);
	testing_flush(&world);
	assert(testing_health(&world).dropped_records == 0);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.leaks == 3);
	/* The newest comes first. */
	assert(told.leak.listed > 0 && told.buffers < 3 * told.leak.listed);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(a_site_has_the_phases_of_its_buffers)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct testing_told told;
	char phase[32];

	testing_init(&world);
	testing_open(&world);
	testing_buffer(snapshot, process, DRAM, 1, "weights", NULL);
	testing_buffer(snapshot, process, DRAM, 2, "weights", "load\x1e");
	testing_buffer(snapshot, process, DRAM, 3, "weights", "step");
	testing_buffer(snapshot, process, DRAM, 4, "weights", "load\x1e");
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_flush(&world);
	told = testing_told_leaks(&world, &testing_everything);
	assert(told.parts == 1 && strcmp(told.part.phases, "load?\x1estep") == 0);
	/* Of very many, the first. */
	for (uint32_t i = 0; i < 30; i++) {
		snprintf(phase, sizeof(phase), "%" PRIu32, i);
		testing_buffer(snapshot, process, L1, 10 + i, "weights", phase);
	}
	memmove(snapshot->buffers, snapshot->buffers + 4, 30 * sizeof(*snapshot->buffers));
	snapshot->buffer_count = 30;
	store_put_leak(world.store, snapshot, process,
		       &(struct ending){.book = 2, .ended_ns = TESTING_START});
	testing_flush(&world);
	told = testing_told_leaks(&world, &(struct store_filter){.limit = 1});
	assert(told.parts == 1 && told.buffers == 30);
	assert(testing_sql(&world,
			   "SELECT length(phases) - length(replace(phases, char(30), ''))"
			   " FROM leak_sites ORDER BY leak DESC LIMIT 1") == STORE_PHASES_MAX - 1);
	snapshot_free(snapshot);
	testing_close(&world);
}

/* The lists of the user who has the most go first, oldest first; the sums stay. */
UNIT(lists_stay_within_their_share_of_the_file)
{
	struct testing_world world;
	uint32_t process;
	struct snapshot *snapshot = huge_leak(20000, &process);
	const uint32_t mine = 1000, other = 2000;
	struct testing_told told;
	int64_t most;

#if defined(__SANITIZE_THREAD__)
	unit_skip("reading it all takes longer than the ten seconds that a query has");
#endif
	testing_init(&world);
	world.config.size_max = UINT64_C(4) << 20;
	most = (int64_t)(world.config.size_max / STORE_LISTS_SHARE);
	testing_open(&world);
	testing_set_user(snapshot, process, 2000);
	store_put_leak(world.store, snapshot, process, &(struct ending){.ended_ns = TESTING_START});
	testing_set_user(snapshot, process, 1000);
	for (uint64_t book = 1; book <= 40; book++) {
		store_put_leak(world.store, snapshot, process,
			       &(struct ending){.book = book, .ended_ns = TESTING_START});
		testing_flush(&world);
		testing_pass(&world, 20 * TESTING_S);
	}
	testing_put_leak(&world, 43, "weights");
	testing_flush(&world);
	assert(testing_sql(&world, "SELECT sum(bytes) FROM leak_chunks") <= most);
	told = testing_told_leaks(&world, &(struct store_filter){.sees = testing_sees(&other)});
	assert(told.leaks == 1 && told.leak.listed == told.buffers && told.buffers > 0);
	told = testing_told_leaks(&world, &(struct store_filter){.sees = testing_sees(&mine)});
	assert(told.leaks == 41 && told.leak.listed == 0 && told.leak.buffers == 20000);
	assert(told.buffers > 1);
	snapshot_free(snapshot);
	testing_close(&world);
}
