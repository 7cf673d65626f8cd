/* SPDX-License-Identifier: Apache-2.0 */

/* Time series: points can be read back, become coarser, and expire; clock changes do no harm. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing.h"

enum {
	DRAM = 0,
	L1 = 1,
};

struct told {
	size_t count;
	uint64_t first_ns, last_ns; /* times of the points */
	struct store_point last;    /* its texts are no longer valid */
	uint64_t sum;               /* of used */
	bool is_in_order;
};

static int tell(void *context, const struct store_point *point)
{
	struct told *told = context;

	if (told->count++ == 0) {
		told->first_ns = point->time_ns;
		told->is_in_order = true;
	} else if (point->time_ns < told->last.time_ns ||
		   (point->time_ns == told->last.time_ns && point->series <= told->last.series)) {
		told->is_in_order = false;
	}
	told->last_ns = point->time_ns;
	told->last = *point;
	told->sum += point->used;
	return 0;
}

static struct told ask(struct testing_world *world, const struct store_series_query *query)
{
	struct store_series_query page = *query;
	struct store_reader *reader;
	struct store_cursor next;
	struct told told = {0};

	assert(store_reader_open(world->store, &reader) == 0);
	do {
		assert(store_query_series(reader, &page, tell, &told, &next) == 0);
		page.after = next;
	} while (next.more);
	store_reader_close(reader);
	assert(told.count == 0 || told.is_in_order);
	return told;
}

static const struct store_series_query everything = {.device = STORE_ANY, .type = STORE_ANY};

static struct told ask_step(struct testing_world *world, uint32_t step)
{
	struct store_series_query query = everything;

	query.step_s = step;
	query.whole_devices = true;
	return ask(world, &query);
}

/* A sample at the current time: @processes processes, each with @used bytes. */
static void put(struct testing_world *world, uint32_t processes, uint64_t used)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);

	for (uint32_t i = 0; i < processes; i++) {
		uint32_t process = testing_process(snapshot, 100 + i, "train");

		testing_memory(snapshot, process, 0, DRAM, used, 1);
	}
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world->store, snapshot);
	snapshot_free(snapshot);
}

/* @seconds of samples, one every @step. */
static void put_for(struct testing_world *world, uint64_t seconds, uint64_t step, uint64_t used)
{
	for (uint64_t i = 0; i < seconds; i += step) {
		put(world, 1, used);
		if (i / step % 32 == 31)
			testing_flush(world); /* the queue for samples is short */
		testing_pass(world, step * TESTING_S);
	}
	testing_flush(world);
}

UNIT(points_survive_a_round_trip)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START + 5);
	uint32_t process = testing_process(snapshot, 42, "train");
	struct store_series_query query = everything;
	struct told told;

	testing_init(&world);
	testing_open(&world);
	testing_memory(snapshot, process, 0, DRAM, 100, 2);
	testing_memory(snapshot, process, 0, L1, 30, 3);
	testing_memory(snapshot, process, 1, L1, 7, 1);
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world.store, snapshot);
	testing_flush(&world);

	assert(ask(&world, &query).count == 6 && ask(&world, &query).sum == 274);
	query.whole_devices = true;
	told = ask(&world, &query);
	assert(told.count == 3 && told.sum == 137 && told.last.process.id.pid == 0);
	query.whole_devices = false;
	query.process.pid = 42;
	assert(ask(&world, &query).count == 3);
	query.process.start_ticks = 4201;
	assert(ask(&world, &query).count == 0);
	query.process.start_ticks = 4200;
	query.device_uid = 0xabc;
	query.type = L1;
	told = ask(&world, &query);
	assert(told.count == 1 && told.last.used == 30 && told.last.buffers == 3);
	assert(told.last.process.id.pid == 42 && told.last.process.ns_pid == 43);
	assert(told.last.device == 0 && told.last.type == L1 && told.last.step_s == 1);
	assert(told.last.time_ns == TESTING_START);
	query.device_uid = 0;
	query.device = 1;
	assert(ask(&world, &query).last.used == 7);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(dead_and_unused_devices_have_no_points)
{
	struct testing_world world;
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t living = testing_process(snapshot, 42, "train");
	uint32_t dead = testing_process(snapshot, 43, "train");

	testing_init(&world);
	testing_open(&world);
	testing_memory(snapshot, living, 0, DRAM, 0, 0); /* used earlier */
	testing_memory(snapshot, dead, 0, DRAM, 50, 5);
	snapshot->processes[dead].alive = false;
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world.store, snapshot);
	testing_flush(&world);
	assert(ask(&world, &everything).count == 1 && ask(&world, &everything).sum == 0);
	snapshot_free(snapshot);
	testing_close(&world);
}

UNIT(coarser_points_keep_the_largest_and_the_last)
{
	struct testing_world world;
	struct told told;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 75; i++) {
		put(&world, 1, i == 4 ? 1000 : i);
		testing_pass(&world, TESTING_S);
		/* Neither a batch in between nor a restart makes a difference. */
		if (i % 20 == 5)
			testing_flush(&world);
		if (i == 33)
			testing_reopen(&world);
	}
	testing_flush(&world);
	assert(ask_step(&world, 1).count == 75);
	told = ask_step(&world, 10);
	assert(told.count == 7 && told.first_ns == TESTING_START); /* the eighth is not complete */
	assert(told.last.used == 69 && told.last.used_max == 69 && told.last.step_s == 10);
	assert(told.sum == 9 + 19 + 29 + 39 + 49 + 59 + 69);
	told = ask_step(&world, 60);
	assert(told.count == 1 && told.last.used == 59 && told.last.used_max == 1000);
	assert(told.last.buffers == 1 && told.last.buffers_max == 1);
	testing_close(&world);
}

UNIT(two_moments_of_a_second_are_one_point)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	put(&world, 1, 70);
	put(&world, 1, 50);
	testing_flush(&world);
	assert(ask_step(&world, 1).count == 1 && ask_step(&world, 1).last.used == 50);
	assert(ask_step(&world, 1).last.used_max == 70);
	testing_close(&world);
}

UNIT(all_series_and_one_have_the_same_points)
{
	struct testing_world world;
	struct store_series_query all = everything, one = everything;
	size_t alone = 0;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 20; i++) {
		put(&world, 30 + i % 3, i);
		testing_pass(&world, TESTING_S * (1 + i % 2));
	}
	testing_flush(&world);
	all.limit = 17;
	for (uint32_t pid = 100; pid < 132; pid++) {
		one.process.pid = pid;
		one.limit = 3;
		alone += ask(&world, &one).count;
	}
	assert(alone + ask_step(&world, 1).count == ask(&world, &all).count);
	assert(ask(&world, &all).count == 20 * 31 + 19);
	all.from_ns = TESTING_START + 3 * TESTING_S;
	all.to_ns = TESTING_START + 4 * TESTING_S;
	assert(ask(&world, &all).count == 32 + 30 + 1 + 1);
	assert(ask(&world, &all).first_ns == all.from_ns);
	all.step_s = 7;
	{
		struct store_reader *reader;
		struct store_cursor next;
		struct told told = {0};

		assert(store_reader_open(world.store, &reader) == 0);
		assert(store_query_series(reader, &all, tell, &told, &next) == -EINVAL);
		store_reader_close(reader);
	}
	testing_close(&world);
}

UNIT(points_are_kept_for_thirty_one_days)
{
	struct testing_world world;
	struct store_series_query query = everything;
	struct told told;
	uint64_t end;

	testing_init(&world);
	world.config.size_max = UINT64_C(8) << 20;
	testing_open(&world);
	testing_put_leak(&world, 7, "old");
	put_for(&world, 30 * 86400, 60, 60);
	assert(testing_health(&world).size <= world.config.size_max);
	put_for(&world, 86400 - 7200, 10, 10);
	put_for(&world, 7200, 1, 1);
	testing_put_leak(&world, 8, "new");
	testing_pass(&world, 10 * TESTING_S);
	put_for(&world, 1, 1, 1);
	end = world.real_ns - TESTING_S;

	told = ask_step(&world, 1);
	assert(told.count >= 3600 - 20 && told.count <= 3600 + 20);
	assert(end - told.first_ns >= 3590 * TESTING_S && end - told.first_ns <= 3610 * TESTING_S);
	assert(told.last_ns == end);
	told = ask_step(&world, 10);
	assert(told.count >= 8640 - 10 && told.count <= 8640 + 10);
	assert(end - told.first_ns <= 86430 * TESTING_S);
	told = ask_step(&world, 60);
	assert(told.count >= 43200 - 10 && told.count <= 43200 + 10);
	assert(end - told.first_ns <= (30 * 86400 + 100) * TESTING_S);

	/* The resolution is chosen automatically. */
	query.from_ns = end - 1800 * TESTING_S;
	query.whole_devices = true;
	assert(ask(&world, &query).last.step_s == 1 && ask(&world, &query).count == 1791);
	query.from_ns = end - 7200 * TESTING_S;
	assert(ask(&world, &query).last.step_s == 10);
	query.from_ns = 0;
	assert(ask(&world, &query).last.step_s == 60);

	assert(testing_count_leaks(&world) == 1); /* the other one is too old */
	assert(testing_health(&world).size <= world.config.size_max);
	assert(testing_health(&world).dropped_samples == 0);
	testing_close(&world);
}

/* Far more than fits: the newest is there, and the finest resolution was cut. */
UNIT(the_size_limit_is_kept)
{
	struct testing_world world;
	uint64_t most = 0, sent = 0;
	struct store_series_query query = everything;

	testing_init(&world);
	world.config.size_max = UINT64_C(2) << 20;
	testing_open(&world);
	for (uint32_t i = 0; i < 1200; i++) {
		put(&world, 200, i);
		if (i % 8 == 7) {
			struct store_health health;

			testing_flush(&world);
			health = testing_health(&world);
			most = health.size > most ? health.size : most;
		}
		testing_pass(&world, TESTING_S);
		sent += 201;
	}
	testing_flush(&world);
	assert(most <= world.config.size_max && most > world.config.size_max / 2);
	assert(testing_health(&world).dropped_samples == 0);
	query.step_s = 1;
	assert(ask(&world, &query).last_ns == TESTING_START + 1199 * TESTING_S);
	assert(ask(&world, &query).count < sent / 2);
	query.step_s = 60;
	assert(ask(&world, &query).count == 19 * 201);
	testing_close(&world);
}

UNIT(a_clock_that_jumps_ahead_costs_nothing)
{
	struct testing_world world;
	uint64_t before;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 7, "leak");
	put_for(&world, 100, 1, 5);
	before = world.real_ns;
	testing_set_clock(&world, before + UINT64_C(400) * 86400 * TESTING_S);
	put_for(&world, 50, 1, 6);
	assert(testing_count_leaks(&world) == 1 && ask_step(&world, 1).count == 150);
	/* The mistake is noticed and corrected. Its points expire after a while, the rest stays. */
	testing_set_clock(&world, before + 50 * TESTING_S);
	put_for(&world, 100, 1, 7);
	assert(ask_step(&world, 1).count == 250);
	testing_pass(&world, 3500 * TESTING_S);
	put_for(&world, 100, 1, 8);
	assert(testing_count_leaks(&world) == 1);
	assert(ask_step(&world, 1).last_ns < world.real_ns);
	assert(ask_step(&world, 60).sum == 5 + 5 + 7 + 7 + 8 + 8 ||
	       ask_step(&world, 60).count >= 5);
	testing_close(&world);
}

UNIT(a_clock_that_stays_ahead_is_believed_in_the_end)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 7, "leak");
	put_for(&world, 100, 1, 5);
	testing_set_clock(&world, world.real_ns + UINT64_C(400) * 86400 * TESTING_S);
	put_for(&world, 3500, 10, 6);
	assert(testing_count_leaks(&world) == 1);
	put_for(&world, 500, 10, 6); /* it was noticed only with the first batch */
	assert(testing_count_leaks(&world) == 0 && ask_step(&world, 60).count == 67);
	testing_close(&world);
}

UNIT(a_clock_set_back_loses_nothing)
{
	struct testing_world world;
	struct told told;

	testing_init(&world);
	testing_open(&world);
	put_for(&world, 600, 1, 5);
	testing_set_clock(&world, world.real_ns - 300 * TESTING_S);
	put_for(&world, 100, 1, 3);
	told = ask_step(&world, 1);
	assert(told.count == 600 && told.last.used == 5);
	assert(told.sum == 500 * 5 + 100 * 3);
	/* Both values occurred, so the larger is the maximum; the newer is the last. */
	told = ask_step(&world, 10);
	assert(told.count == 60 && told.sum == 51 * 5 + 9 * 3);
	assert(testing_health(&world).refused == 0);
	testing_close(&world);
}

/* No battery and no network yet: the clock starts in 1970 and is set later. */
UNIT(a_clock_that_starts_in_1970_loses_nothing)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 7, "leak");
	put_for(&world, 100, 1, 5);
	testing_close(&world);

	testing_set_clock(&world, 5 * TESTING_S);
	testing_open(&world);
	put_for(&world, 1000, 10, 6);
	assert(testing_count_leaks(&world) == 1 && ask_step(&world, 1).count == 200);
	testing_set_clock(&world, TESTING_START + 2000 * TESTING_S);
	put_for(&world, 7200, 10, 7);
	assert(testing_count_leaks(&world) == 1);
	assert(ask_step(&world, 60).first_ns == TESTING_START);
	assert(ask_step(&world, 1).last_ns == world.real_ns - 10 * TESTING_S);
	testing_close(&world);
}
