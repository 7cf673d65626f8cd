/* SPDX-License-Identifier: Apache-2.0 */

/* Ends of processes and runs of the daemon: what is stored, who sees it, and how much is kept. */

#include <string.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing.h"

enum {
	LIST_MAX = 8,
};

struct ended_list {
	struct store_ended list[LIST_MAX]; /* their texts must not be used */
	size_t count;
	uint64_t hidden;
	struct store_cursor next;
};

static void put_ending(struct testing_world *world, uint32_t pid, const struct ending *ending)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");

	testing_set_user(snapshot, process, 1000 + pid % 2);
	store_put_ending(world->store, snapshot, process, ending);
	snapshot_free(snapshot);
}

static int take_ended(void *context, const struct store_ended *ended)
{
	struct ended_list *to = context;

	assert(to->count < LIST_MAX && strcmp(ended->process.comm, "train") == 0);
	to->list[to->count++] = *ended;
	return 0;
}

static struct ended_list list_ended(struct testing_world *world, const struct store_filter *filter)
{
	struct ended_list to = {.count = 0};
	struct store_reader *reader;

	testing_flush(world);
	assert(store_reader_open(world->store, &reader) == 0);
	assert(store_query_endings(reader, filter, take_ended, &to, &to.next) == 0);
	if (filter->sees.may_see)
		assert(store_query_other_endings(reader, &filter->sees, &to.hidden) == 0);
	store_reader_close(reader);
	return to;
}

UNIT(ends_are_listed_newest_first_with_what_they_left)
{
	struct testing_world world;
	const struct ending ended = {
		.book = 1, .ended_ns = TESTING_START, .closed = true, .has_status = true};
	const struct ending killed = {
		.book = 2, .ended_ns = TESTING_START, .has_status = true, .status = 9};
	struct ended_list to;

	testing_init(&world);
	testing_open(&world);
	put_ending(&world, 1, &ended);
	put_ending(&world, 2, &killed);
	put_ending(&world, 2, &killed); /* the same again */
	testing_put_leak(&world, 2, "weights");
	to = list_ended(&world, &(struct store_filter){0});
	assert(to.count == 2 && !to.next.more);
	assert(to.list[0].process.id.pid == 2 && to.list[1].process.id.pid == 1);
	assert(to.list[0].bytes == 4096 && to.list[0].buffers == 1);
	assert(to.list[0].ending.status == 9 && !to.list[0].ending.closed);
	assert(to.list[1].bytes == 0 && to.list[1].ending.closed);
	assert(to.list[1].ending.has_status && to.list[1].ending.status == 0);
	/* They are no records of something that went wrong. */
	assert(testing_health(&world).records == 1);
	testing_close(&world);
}

UNIT(pages_of_ends_follow_each_other)
{
	struct testing_world world;
	struct store_filter filter = {.limit = 2};
	struct ended_list to;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 3; pid++)
		put_ending(&world, pid, &(struct ending){.ended_ns = TESTING_START});
	to = list_ended(&world, &filter);
	assert(to.count == 2 && to.next.more && to.list[1].process.id.pid == 2);
	filter.after = to.next;
	to = list_ended(&world, &filter);
	assert(to.count == 1 && !to.next.more && to.list[0].process.id.pid == 1);
	testing_close(&world);
}

UNIT(users_see_the_ends_of_their_own)
{
	struct testing_world world;
	const uint32_t mine = 1001;
	struct ended_list to;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 4; pid++)
		put_ending(&world, pid, &(struct ending){.ended_ns = TESTING_START});
	to = list_ended(&world, &(struct store_filter){.sees = testing_sees(&mine)});
	assert(to.count == 2 && to.hidden == 2);
	assert(to.list[0].process.id.pid == 3 && to.list[1].process.id.pid == 1);
	assert(list_ended(&world, &(struct store_filter){.pid = 4}).count == 1);
	testing_close(&world);
}

UNIT(old_ends_are_deleted)
{
	struct testing_world world;

	testing_init(&world);
	world.config.keep_s = 3600;
	testing_open(&world);
	put_ending(&world, 1, &(struct ending){.ended_ns = world.real_ns});
	testing_flush(&world);
	testing_pass(&world, 3601 * TESTING_S);
	put_ending(&world, 2, &(struct ending){.ended_ns = world.real_ns});
	testing_reopen(&world); /* the last batch is followed by a look at what is too old */
	assert(list_ended(&world, &(struct store_filter){.pid = 1}).count == 0);
	assert(list_ended(&world, &(struct store_filter){.pid = 2}).count == 1);
	testing_close(&world);
}

struct run_list {
	struct store_run list[LIST_MAX];
	size_t count;
};

static int take_run(void *context, const struct store_run *run)
{
	struct run_list *to = context;

	assert(to->count < LIST_MAX);
	to->list[to->count++] = *run;
	return 0;
}

static struct run_list list_runs(struct testing_world *world, uint64_t from_ns, uint64_t to_ns)
{
	struct run_list to = {.count = 0};
	struct store_reader *reader;

	testing_flush(world);
	testing_wait(world, true);
	assert(store_reader_open(world->store, &reader) == 0);
	assert(store_query_runs(reader, from_ns, to_ns, take_run, &to) == 0);
	store_reader_close(reader);
	return to;
}

/* So that there is something to flush, after which the run is written. */
static void put_sample(struct testing_world *world)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);

	testing_memory(snapshot, testing_process(snapshot, 42, "train"), 0, 0, 1, 1);
	assert(snapshot_finish(snapshot) == 0);
	store_put_sample(world->store, snapshot);
	snapshot_free(snapshot);
	testing_flush(world);
}

UNIT(runs_of_the_daemon_have_their_starts_and_ends)
{
	struct testing_world world;
	struct run_list to;

	testing_init(&world);
	world.config.start_ns = TESTING_START - 5;
	testing_open(&world);
	put_sample(&world);
	testing_pass(&world, 10 * TESTING_S);
	testing_close(&world);
	testing_pass(&world, 10 * TESTING_S);
	world.config.start_ns = 0; /* when the file is opened */
	testing_open(&world);
	put_sample(&world);
	to = list_runs(&world, 0, UINT64_MAX);
	assert(to.count == 2);
	assert(to.list[0].start_ns == TESTING_START - 5 && to.list[0].state == STORE_RUN_ENDED);
	assert(to.list[0].end_ns == TESTING_START + 10 * TESTING_S);
	assert(to.list[1].start_ns == TESTING_START + 20 * TESTING_S);
	assert(to.list[1].state == STORE_RUN_GOES_ON && to.list[1].end_ns == 0);
	assert(list_runs(&world, TESTING_START + 11 * TESTING_S, UINT64_MAX).count == 1);
	assert(list_runs(&world, TESTING_START, TESTING_START + TESTING_S).count == 1);
	testing_close(&world);
}

UNIT(a_killed_run_ended_after_its_last_point)
{
	struct testing_world world;
	struct run_list to;

	testing_init(&world);
	testing_open(&world);
	put_sample(&world);
	testing_pass(&world, 7 * TESTING_S);
	put_sample(&world);
	testing_pass(&world, 3 * TESTING_S);
	testing_close(&world);
	testing_sql(&world, "UPDATE runs SET state = 0, end_ns = NULL");
	testing_pass(&world, 60 * TESTING_S);
	testing_open(&world);
	testing_wait(&world, true);
	testing_close(&world);
	/* The second one did not even write a point. */
	testing_sql(&world, "UPDATE runs SET state = 0, end_ns = NULL WHERE id = 2");
	testing_pass(&world, 60 * TESTING_S);
	testing_open(&world);
	put_sample(&world);
	to = list_runs(&world, 0, UINT64_MAX);
	assert(to.count == 3);
	assert(to.list[0].state == STORE_RUN_LOST);
	assert(to.list[0].end_ns == TESTING_START + 7 * TESTING_S);
	assert(to.list[1].state == STORE_RUN_LOST && to.list[1].end_ns == 0);
	testing_close(&world);
}

UNIT(the_oldest_runs_are_deleted)
{
	struct testing_world world;

	testing_init(&world);
	testing_open(&world);
	put_sample(&world);
	testing_close(&world);
	testing_sql(&world, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
			    " i < 1100) INSERT INTO runs(start_ns, end_ns, state) SELECT"
			    " 1700000000000000000 - i * 1000, 1700000000000000000, 1 FROM n");
	testing_pass(&world, 60 * TESTING_S);
	testing_open(&world);
	put_sample(&world);
	testing_close(&world);
	assert(testing_sql(&world, "SELECT count(*) FROM runs") == STORE_RUNS_MAX);
	assert(testing_sql(&world, "SELECT count(*) FROM runs WHERE id = 1") == 0);
}
