/* SPDX-License-Identifier: Apache-2.0 */

/* A put never waits: what does not fit is counted. Readers can read while the writer writes. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/unit.h"
#include "store/store-testing.h"

UNIT(items_beyond_the_queue_are_counted)
{
	struct testing_world world;
	struct store_health health;
	uint64_t start;

	testing_init(&world);
	world.config.queue_items = 64;
	testing_hold(&world, true);
	testing_open(&world);
	start = clock_ms(CLOCK_MONOTONIC);
	for (uint32_t pid = 1; pid <= 1000; pid++)
		testing_put_leak(&world, pid, "weights");
	assert(clock_ms(CLOCK_MONOTONIC) - start < 10000);
	health = testing_health(&world);
	assert(health.queued == 64 && health.dropped_records == 936 && health.written == 0);
	assert(store_flush(world.store, 10) == -ETIMEDOUT);
	testing_hold(&world, false);
	testing_flush(&world);
	health = testing_health(&world);
	assert(health.queued == 0 && health.queued_bytes == 0 && health.written == 64);
	assert(testing_count_leaks(&world) == 64);

	/* Afterwards everything works again. */
	testing_put_leak(&world, 2000, "weights");
	testing_flush(&world);
	assert(testing_health(&world).dropped_records == 936 && testing_count_leaks(&world) == 65);
	testing_close(&world);
}

UNIT(bytes_in_the_queue_are_bounded)
{
	struct testing_world world;
	struct store_health health;

	testing_init(&world);
	world.config.queue_bytes = 64 << 10;
	testing_hold(&world, true);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 1000; pid++)
		testing_put_leak(&world, pid, "weights");
	health = testing_health(&world);
	assert(health.queued_bytes <= 64 << 10 && health.queued_bytes > 32 << 10);
	assert(health.queued + health.dropped_records == 1000);
	testing_hold(&world, false);
	testing_close(&world);
}

UNIT(a_flood_of_moments_leaves_room_for_leaks)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, 42, "train");

	testing_init(&world);
	testing_hold(&world, true);
	testing_open(&world);
	testing_memory(snapshot, process, 0, 0, 5, 5);
	assert(snapshot_finish(snapshot) == 0);
	for (uint32_t i = 0; i < 1000; i++)
		store_put_sample(world.store, snapshot);
	testing_put_leak(&world, 1, "weights");
	assert(testing_health(&world).dropped_samples > 0);
	assert(testing_health(&world).dropped_records == 0);
	testing_hold(&world, false);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 1);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(queued_items_are_written_at_the_end)
{
	struct testing_world world;

	testing_init(&world);
	world.config.batch_ms = 3600000;
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_reopen(&world);
	assert(testing_count_leaks(&world) == 1);
	testing_close(&world);
}

#define PUTTERS 4
#define PUTS 500u

struct putter {
	struct testing_world *world;
	uint32_t first;
};

static void *put_many(void *argument)
{
	struct putter *putter = argument;

	for (uint32_t i = 0; i < PUTS; i++)
		testing_put_leak(putter->world, putter->first + i, "weights");
	return NULL;
}

UNIT(many_threads_may_put)
{
	struct testing_world world;
	struct putter putters[PUTTERS];
	pthread_t threads[PUTTERS];

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < PUTTERS; i++) {
		putters[i] = (struct putter){&world, 1 + i * PUTS};
		assert(pthread_create(&threads[i], NULL, put_many, &putters[i]) == 0);
	}
	for (uint32_t i = 0; i < PUTTERS; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	testing_flush(&world);
	assert(testing_health(&world).written == PUTTERS * PUTS);
	assert(testing_count_leaks(&world) == PUTTERS * PUTS);
	testing_close(&world);
}

/* Every report has two buffers and says so; a reader must never see an incomplete one. */
struct looker {
	struct testing_world *world;
	bool stop; /* atomic */
	uint64_t looks, seen, buffers;
};

static int look_leak(void *context, const struct store_leak *leak)
{
	struct looker *looker = context;

	assert(leak->buffers == 2);
	looker->seen++;
	looker->buffers += leak->listed;
	return 0;
}

static int look_site(void *context, const struct store_incident *incident)
{
	struct looker *looker = context;

	assert(incident->site.buffers == 2 * incident->site.count);
	looker->seen++;
	return 0;
}

static void *look(void *argument)
{
	struct looker *looker = argument;
	struct store_leak_rows leaks = {.context = looker, .leak = look_leak};
	struct store_incident_rows sites = {.context = looker, .incident = look_site};
	uint64_t before = 0;

	while (!__atomic_load_n(&looker->stop, __ATOMIC_SEQ_CST)) {
		struct store_filter filter = {0};
		struct store_reader *reader;
		struct store_cursor next;

		assert(store_reader_open(looker->world->store, &reader) == 0);
		for (int i = 0; i < 10; i++) {
			looker->seen = looker->buffers = 0;
			assert(store_query_leaks(reader, &filter, &leaks, &next) == 0);
			assert(looker->seen >= before && looker->buffers % 2 == 0);
			before = looker->seen;
			assert(store_query_incidents(reader, &filter, &sites, &next) == 0);
			looker->looks++;
		}
		store_reader_close(reader);
	}
	return NULL;
}

UNIT(reading_while_writing)
{
	struct testing_world world;
	struct looker lookers[2];
	pthread_t threads[2];

	testing_init(&world);
	world.config.batch_ms = 1;
	testing_open(&world);
	for (size_t i = 0; i < 2; i++) {
		lookers[i] = (struct looker){.world = &world};
		assert(pthread_create(&threads[i], NULL, look, &lookers[i]) == 0);
	}
	for (uint32_t pid = 1; pid <= 1000; pid++) {
		struct snapshot *snapshot = testing_snapshot(TESTING_START);
		uint32_t process = testing_process(snapshot, pid, "train");

		testing_buffer(snapshot, process, 0, 1, "weights", NULL);
		testing_buffer(snapshot, process, 0, 2, "weights", NULL);
		store_put_leak(world.store, snapshot, process,
			       &(struct store_ending){.ended_ns = TESTING_START});
		snapshot_free(snapshot);
		if (pid % 10 == 0)
			testing_flush(&world);
	}
	for (size_t i = 0; i < 2; i++) {
		__atomic_store_n(&lookers[i].stop, true, __ATOMIC_SEQ_CST);
		assert(pthread_join(threads[i], NULL) == 0);
		assert(lookers[i].looks > 0);
	}
	assert(testing_count_leaks(&world) == 1000);
	testing_close(&world);
}

UNIT(an_empty_store_has_nothing_to_tell)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	assert(testing_count_leaks(&world) == 0 && testing_count_sites(&world) == 0);
	testing_close(&world);
}

static int stop_at_once(void *context, const struct store_leak *leak)
{
	(*(int *)context)++;
	return 1;
}

static int fail_at_once(void *context, const struct store_leak *leak)
{
	return -ECANCELED;
}

UNIT(a_row_function_may_end_the_query)
{
	struct testing_world world;
	struct store_filter filter = {0};
	struct store_reader *reader;
	struct store_cursor next = {.major = 77};
	int calls = 0;
	struct store_leak_rows rows = {.context = &calls, .leak = stop_at_once};

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_put_leak(&world, 2, "weights");
	testing_flush(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	rows.leak = fail_at_once;
	assert(store_query_leaks(reader, &filter, &rows, &next) == -ECANCELED);
	assert(next.major == 77);
	rows.leak = stop_at_once;
	assert(store_query_leaks(reader, &filter, &rows, &next) == 0);
	assert(calls == 1 && next.more);
	store_reader_close(reader);
	testing_close(&world);
}
