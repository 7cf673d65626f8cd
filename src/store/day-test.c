/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A day of samples, one per second, as on a busy machine: the file stays within its size, and what
 * was kept can be queried. DAY_PROCESSES changes the number of processes, DAY_FILE receives the
 * size (./dev load).
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "store/store.h"
#include "store/testing/store-testing.h"

#define DAY_S 86400u
#define DAY_CAP (UINT64_C(256) << 20) /* as in the daemon */
#define DRAM 0u
#define L1 1u

static uint32_t day_processes(void)
{
	const char *text = getenv("DAY_PROCESSES");

	return text ? (uint32_t)strtoul(text, NULL, 10) : 1;
}

/* Each process is on one of eight devices, with changing DRAM and L1; new ones replace old ones. */
static void day_put(struct testing_world *world, uint32_t processes, uint32_t second)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);

	for (uint32_t i = 0; i < processes; i++) {
		uint32_t pid = 100 + i + 1000 * (second / 3600 + i % 2);
		uint32_t process = testing_process(snapshot, pid, "train");

		testing_memory(snapshot, process, i % 8, DRAM, (second + i) * UINT64_C(4096),
			       i + 1);
		testing_memory(snapshot, process, i % 8, L1, (second % 60) * UINT64_C(64), 1);
	}
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world->store, snapshot);
	snapshot_free(snapshot);
}

static int day_count(void *context, const struct store_point *point)
{
	uint64_t *count = context;

	++*count;
	return point->used_max >= point->used ? 0 : -1;
}

static uint64_t day_ask(struct testing_world *world, uint32_t step, uint64_t from_ns)
{
	struct store_series_query query = {
		.device = 0,
		.type = DRAM,
		.whole_devices = true,
		.step_s = step,
		.from_ns = from_ns,
		.limit = 100000,
	};
	struct store_reader *reader;
	struct store_cursor next;
	uint64_t count = 0;

	assert(store_reader_open(world->store, &reader) == 0);
	assert(store_query_series(reader, &query, day_count, &count, &next) == 0);
	store_reader_close(reader);
	return count;
}

/* A passing test prints nothing, so a file can be named for the figure. */
static void day_tell(uint64_t bytes)
{
	const char *path = getenv("DAY_FILE");
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!file)
		return;
	fprintf(file, "%" PRIu64 "\n", bytes);
	fclose(file);
}

UNIT_LONG(a_day_of_points_stays_within_the_size_limit, 900)
{
	struct testing_world world;
	uint32_t processes = day_processes();
	uint64_t most = 0;

	testing_init(&world);
	world.config.size_max = DAY_CAP;
	testing_open(&world);
	for (uint32_t second = 0; second < DAY_S; second++) {
		day_put(&world, processes, second);
		if (second % 16 == 15)
			testing_flush(&world); /* the queue for samples is short */
		if (second % 1024 == 1023 && testing_health(&world).size > most)
			most = testing_health(&world).size;
		testing_pass(&world, TESTING_S);
	}
	testing_flush(&world);
	assert(most <= DAY_CAP && testing_health(&world).size <= DAY_CAP);
	assert(testing_health(&world).dropped_samples == 0);
	/* The whole day by minutes and by ten seconds, the last hour by seconds. */
	assert(day_ask(&world, 60, 0) >= DAY_S / 60 - 2);
	assert(day_ask(&world, 10, world.real_ns - 80000 * TESTING_S) >= 7990);
	assert(day_ask(&world, 1, world.real_ns - 3500 * TESTING_S) >= 3490);
	day_tell(most);
	testing_close(&world);
}
