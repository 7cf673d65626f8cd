/* SPDX-License-Identifier: Apache-2.0 */

/* A put never waits: what does not fit is counted. Readers can read while the writer writes. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "store/store-item.h"
#include "store/store-queue.h"
#include "store/testing/store-testing-rows.h"
#include "store/testing/store-testing.h"

UNIT(items_beyond_the_queue_are_counted)
{
	struct testing_world world;
	struct store_health health;

	testing_init(&world);
	world.config.queue_items = 128; /* a user alone gets half */
	testing_hold(&world, true);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 1000; pid++)
		testing_put_leak(&world, pid, "weights");
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
	world.config.queue_bytes = 128 << 10; /* a user alone gets half */
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

static void put_leak_of(struct testing_world *world, uint32_t uid, uint32_t pid)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct ending ending = {.book = pid, .ended_ns = world->real_ns};

	snapshot->processes[process].user_id = snapshot->processes[process].maker_id = uid;
	testing_buffer(snapshot, process, 0, 0x1000, "weights", NULL);
	store_put_leak(world->store, snapshot, process, &ending);
	snapshot_free(snapshot);
}

/* A failed allocation of @size at the call site @site. */
static void put_failure_of(struct testing_world *world, uint32_t uid, uint32_t site, uint64_t size,
			   uint64_t count)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, uid, "train");
	char phase[32];
	struct snapshot_incident incident = {
		.kind = "alloc_failed",
		.process = process,
		.size = size,
		.largest_free = UINT64_MAX,
		.count = count,
		.time_ns = TESTING_START + size,
		.last_ns = TESTING_START + size,
		.second = {.known = true, .phase = phase},
	};

	/* Numbers at the end of a name do not make it another site. */
	snprintf(phase, sizeof(phase), "phase %" PRIu32, site);
	snapshot->processes[process].user_id = snapshot->processes[process].maker_id = uid;
	testing_memory(snapshot, process, 0, 0, 5, 5);
	assert(snapshot_finish(snapshot) == 0);
	store_put_failure(world->store, snapshot, &incident);
	snapshot_free(snapshot);
}

UNIT(failures_of_others_cost_no_leak_report)
{
	struct testing_world world;
	struct store_health health;

	testing_init(&world);
	world.config.queue_items = 256;
	testing_hold(&world, true);
	testing_open(&world);
	for (uint32_t i = 0; i < 4000; i++)
		put_failure_of(&world, 1 + i % 4, i, 1, 1);
	for (uint32_t pid = 1; pid <= 30; pid++)
		put_leak_of(&world, 77, pid);
	health = testing_health(&world);
	assert(health.dropped_records > 3000 && health.dropped_leaks == 0);
	testing_hold(&world, false);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 30);
	testing_close(&world);
}

static struct store_item *leak_item(uint32_t uid, uint32_t pid)
{
	struct snapshot *snapshot = testing_snapshot(TESTING_START);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct store_item *item = NULL;

	snapshot->processes[process].user_id = snapshot->processes[process].maker_id = uid;
	testing_buffer(snapshot, process, 0, 0x1000, "weights", NULL);
	assert(store_item_leak(snapshot, process, &(struct ending){.book = pid}, 1 << 20, &item) ==
		       0 &&
	       item);
	snapshot_free(snapshot);
	return item;
}

UNIT(the_writer_takes_records_of_users_in_turn)
{
	struct store_queue queue;
	struct store_item *list;
	uint32_t before = 0, count = 0;

	store_queue_init(&queue, 8192, 32 << 20);
	for (uint32_t pid = 1; pid <= 600; pid++)
		store_queue_put_consume(&queue, STORE_LANE_RECORDS, leak_item(1, pid));
	store_queue_put_consume(&queue, STORE_LANE_RECORDS, leak_item(2, 1000));
	list = store_queue_take(&queue, STORE_LANE_RECORDS);
	for (const struct store_item *item = list; item; item = item->next) {
		before += item->processes[0].uid == 1 && count == before;
		count++;
	}
	assert(count == STORE_BATCH_ITEMS && before <= 1);
	/* What could not be written comes first the next time, in the same order. */
	store_queue_put_back(&queue, STORE_LANE_RECORDS, list);
	list = store_queue_take(&queue, STORE_LANE_RECORDS);
	assert(list->processes[0].uid == 2 || list->next->processes[0].uid == 2);
	store_queue_finish(&queue, STORE_LANE_RECORDS, list, false);
	assert(store_queue_is_waiting(&queue));
	list = store_queue_take(&queue, STORE_LANE_RECORDS);
	store_queue_finish(&queue, STORE_LANE_RECORDS, list, false);
	assert(!store_queue_is_waiting(&queue));
	assert(queue.kinds[STORE_LANE_RECORDS].load.items == 0);
	assert(queue.kinds[STORE_LANE_RECORDS].load.bytes == 0);
	store_queue_deinit(&queue);
}

UNIT(failures_leave_room_for_leak_reports_of_the_same_user)
{
	struct testing_world world;

	testing_init(&world);
	world.config.queue_items = 256;
	testing_hold(&world, true);
	testing_open(&world);
	for (uint32_t i = 0; i < 1000; i++)
		put_failure_of(&world, 77, i, 1, 1);
	for (uint32_t pid = 1; pid <= 60; pid++)
		put_leak_of(&world, 77, pid);
	assert(testing_health(&world).dropped_leaks == 0);
	testing_hold(&world, false);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 60);
	testing_close(&world);
}

/* More users than there are lanes: nobody gets nothing, and memory stays bounded. */
UNIT(every_one_of_a_thousand_users_has_a_little_room)
{
	struct testing_world world;
	struct store_health health;

	testing_init(&world);
	world.config.queue_items = 64 * 64;
	testing_hold(&world, true);
	testing_open(&world);
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t uid = 1; uid <= 63; uid++)
			put_leak_of(&world, uid, round * 10000 + uid);
	}
	assert(testing_health(&world).dropped_leaks > 0);
	assert(testing_health(&world).queued <= 2 * 64 * 64);
	health = testing_health(&world);
	put_leak_of(&world, 64, 99999); /* the last lane of its own */
	assert(testing_health(&world).dropped_leaks == health.dropped_leaks);
	for (uint32_t uid = 65; uid <= 1000; uid++)
		put_leak_of(&world, uid, 20000 + uid);
	/* They share one lane, which has as much as each of the others. */
	assert(testing_health(&world).queued == health.queued + 1 + 64);
	testing_hold(&world, false);
	testing_flush(&world);
	testing_close(&world);
}

UNIT(waiting_incidents_of_one_site_are_counted_and_not_queued_again)
{
	struct testing_world world;
	struct testing_told told;

	testing_init(&world);
	testing_hold(&world, true);
	testing_open(&world);
	for (uint64_t i = 0; i < 100; i++)
		put_failure_of(&world, 77, 1, 1 + i % 50, 1 + i / 50);
	assert(testing_health(&world).queued == 1 && testing_health(&world).joined == 99);
	testing_hold(&world, false);
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	/* Fifty sizes, each twice, as if each had been written; the newest is the example. */
	assert(told.incidents == 1 && told.incident.site.count == 100);
	assert(told.incident.example.size == 50 && told.holders == 1);
	assert(told.incident.site.first_ns == TESTING_START + 1);
	assert(told.incident.site.last_ns == TESTING_START + 50);

	/* Nothing is counted twice when it comes again. */
	for (uint64_t i = 0; i < 50; i++)
		put_failure_of(&world, 77, 1, 1 + i, 2);
	put_failure_of(&world, 77, 1, 7, 3);
	testing_flush(&world);
	told = testing_told_incidents(&world, &testing_everything);
	assert(told.incidents == 1 && told.incident.site.count == 101);
	testing_close(&world);
}

UNIT(incidents_of_other_sites_or_processes_stay_separate)
{
	struct testing_world world;

	testing_init(&world);
	testing_hold(&world, true);
	testing_open(&world);
	put_failure_of(&world, 77, 1, 1, 1);
	put_failure_of(&world, 77, 2, 1, 1);
	put_failure_of(&world, 78, 1, 1, 1);
	assert(testing_health(&world).queued == 3 && testing_health(&world).joined == 0);
	testing_hold(&world, false);
	testing_flush(&world);
	assert(testing_count_sites(&world) == 3);
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
			       &(struct ending){.ended_ns = TESTING_START});
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
