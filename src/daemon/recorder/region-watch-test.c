/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that are only in a region, and what is told of their ends. */

#include "daemon/recorder/region-watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "model/snapshot.h"
#include "source/proc/proc.h"

struct world {
	struct loop *loop;
	struct proc proc;
	struct region_watch *watch;
	unsigned int woken, ended;
	struct ending ending;
	uint64_t all_bytes;
	uint32_t pid;
	uint64_t bytes;
	size_t parts;
};

static void play_wake(void *context)
{
	((struct world *)context)->woken++;
}

static void play_ended(void *context, const struct snapshot *snapshot, const struct ending *ending)
{
	struct world *world = context;
	uint64_t buffers;

	assert(snapshot->process_count == 1 && snapshot->buffer_count == 0);
	world->ended++;
	world->ending = *ending;
	world->pid = snapshot->processes[0].id.pid;
	world->parts = snapshot->processes[0].part_count;
	snapshot_process_totals(&snapshot->processes[0], &world->bytes, &buffers);
	assert(buffers == 0);
	world->all_bytes += world->bytes;
}

static void world_open(struct world *world)
{
	struct region_watch_config config = {
		.context = world, .wake = play_wake, .ended = play_ended};

	*world = (struct world){0};
	assert(proc_open(&world->proc) == 0 && loop_new(&world->loop) == 0);
	config.loop = world->loop;
	config.proc = &world->proc;
	assert(region_watch_new(&world->watch, &config) == 0);
}

static void world_close(struct world *world)
{
	region_watch_free(world->watch);
	loop_free(world->loop);
	proc_close(&world->proc);
}

/* A row of the region of a chip. */
struct row {
	uint64_t chip;
	uint32_t pid;   /* 0 = there is none */
	uint64_t ticks; /* 0 = it has ended */
	uint64_t dram;
	bool has_book;
	uint32_t ns_pid; /* if it is not @pid */
	uint32_t user;   /* of process and region */
};

static void see(struct world *world, const struct row *rows, size_t count)
{
	struct snapshot *snapshot = snapshot_new(1);
	uint32_t index;

	for (size_t i = 0; i < count; i++) {
		struct snapshot_claim claim = {
			.process = {.id.pid = rows[i].pid,
				    .ns_pid = rows[i].ns_pid ? rows[i].ns_pid : rows[i].pid,
				    .user_id = rows[i].user,
				    .id.start_ticks = rows[i].ticks,
				    .comm = "stock",
				    .user = "u",
				    .source = "tt-metal",
				    .alive = rows[i].ticks > 0,
				    .stale = rows[i].ticks == 0},
			.device = (uint32_t)i,
			.facts = {.unique_id = rows[i].chip},
			.types = 1,
			.used = {rows[i].dram},
			.region = rows[i].chip,
			.region_user = rows[i].user,
		};

		if (rows[i].has_book)
			assert(snapshot_add_process(snapshot, &claim.process, &index) == 0);
		if (rows[i].pid)
			assert(snapshot_add_claim(snapshot, &claim) == 0);
	}
	assert(snapshot_finish(snapshot) == 0);
	region_watch_see(world->watch, snapshot);
	region_watch_settle(world->watch);
	snapshot_free(snapshot);
}

static uint32_t start(struct world *world, uint64_t *ret_ticks)
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0) {
		for (;;)
			(void)pause(); /* until it is killed */
	}
	*ret_ticks = proc_start_ticks(&world->proc, (uint32_t)pid);
	assert(*ret_ticks);
	return (uint32_t)pid;
}

static void end(uint32_t pid)
{
	assert(kill((pid_t)pid, SIGKILL) == 0);
	assert(waitpid((pid_t)pid, NULL, 0) == (pid_t)pid);
}

UNIT(the_end_of_a_process_wakes_and_its_rows_are_what_it_left)
{
	struct world world;
	struct row rows[2];
	uint64_t ticks;
	uint32_t pid;

	world_open(&world);
	pid = start(&world, &ticks);
	rows[0] = (struct row){.chip = 7, .pid = pid, .ticks = ticks, .dram = 100};
	rows[1] = (struct row){.chip = 8};
	see(&world, rows, 2);
	end(pid);
	while (world.woken == 0)
		assert(loop_turn(world.loop, -1) == 0);
	/* It had opened another device since the last look. */
	rows[0].ticks = 0;
	rows[0].dram = 60;
	rows[1] = (struct row){.chip = 8, .pid = pid, .dram = 1};
	see(&world, rows, 2);
	assert(world.ended == 1 && world.pid == pid && world.bytes == 61 && world.parts == 2);
	see(&world, rows, 2);
	assert(world.ended == 1 && world.woken == 1);
	world_close(&world);
}

UNIT(how_it_ended_is_told)
{
	struct world world;
	struct row row;
	uint64_t ticks;
	uint32_t pid;

	world_open(&world);
	pid = start(&world, &ticks);
	row = (struct row){.chip = 7, .pid = pid, .ticks = ticks, .dram = 100};
	see(&world, &row, 1);
	assert(kill((pid_t)pid, SIGKILL) == 0);
	while (world.woken == 0) /* it is not waited for yet, so every kernel knows it */
		assert(loop_turn(world.loop, -1) == 0);
	row.ticks = 0;
	see(&world, &row, 1);
	assert(world.ended == 1 && ending_signal(&world.ending) == SIGKILL);
	assert(waitpid((pid_t)pid, NULL, 0) == (pid_t)pid);
	world_close(&world);
}

UNIT(who_freed_everything_or_left_the_region_left_nothing)
{
	struct world world;
	struct row rows[2];

	world_open(&world);
	for (size_t i = 0; i < 2; i++) {
		rows[i] = (struct row){.chip = 7, .dram = 100};
		rows[i].pid = start(&world, &rows[i].ticks);
	}
	see(&world, rows, 2);
	end(rows[0].pid);
	end(rows[1].pid);
	rows[0].ticks = rows[0].dram = 0;
	see(&world, rows, 1);
	assert(world.ended == 0);
	world_close(&world);
}

UNIT(a_living_process_that_left_the_region_or_got_a_book_is_let_go)
{
	struct world world;
	struct row rows[2];

	world_open(&world);
	for (size_t i = 0; i < 2; i++) {
		rows[i] = (struct row){.chip = 7, .dram = 100};
		rows[i].pid = start(&world, &rows[i].ticks);
	}
	see(&world, rows, 2);
	rows[0].has_book = true;
	see(&world, rows, 1);
	end(rows[0].pid);
	end(rows[1].pid);
	rows[0] = (struct row){.chip = 7, .pid = rows[0].pid, .dram = 100};
	see(&world, rows, 1);
	assert(world.ended == 0 && world.woken == 0);
	world_close(&world);
}

/* In containers numbers are small, and a row stays until somebody clears it. */
UNIT(a_row_that_was_stale_before_is_another_processes)
{
	struct world world;
	struct row rows[2];
	uint64_t ticks;
	uint32_t pid;

	world_open(&world);
	pid = start(&world, &ticks);
	rows[0] = (struct row){.chip = 7, .pid = pid, .ticks = ticks, .dram = 100};
	rows[1] = (struct row){.chip = 8, .pid = pid, .dram = 5000};
	see(&world, rows, 2);
	end(pid);
	rows[0].ticks = 0;
	see(&world, rows, 2);
	assert(world.ended == 1 && world.bytes == 100);
	world_close(&world);
}

UNIT(two_containers_with_one_pid_keep_their_own_rows)
{
	struct world world;
	struct row rows[3] = {{0}};
	uint32_t pids[2];

	world_open(&world);
	for (size_t i = 0; i < 2; i++) {
		rows[i] = (struct row){.chip = 7 + i, .ns_pid = 12, .dram = i ? 3000 : 100};
		pids[i] = rows[i].pid = start(&world, &rows[i].ticks);
	}
	see(&world, rows, 2);
	for (size_t i = 0; i < 2; i++) {
		end(pids[i]);
		rows[i] = (struct row){.chip = 7 + i, .pid = 12, .dram = i ? 3000 : 100};
	}
	/* One of them has opened another device since: that is told once. */
	rows[2] = (struct row){.chip = 9, .pid = 12, .dram = 5};
	see(&world, rows, 3);
	assert(world.ended == 2 && world.all_bytes == 3105);
	world_close(&world);
}

UNIT(a_row_in_a_strangers_region_is_no_leak)
{
	/* The second is called like the process's own, which was removed. */
	static const uint64_t chips[] = {666, 7};

	for (size_t i = 0; i < 2; i++) {
		struct world world;
		struct row row = {.chip = 7, .dram = 100, .user = 1000};

		world_open(&world);
		row.pid = start(&world, &row.ticks);
		see(&world, &row, 1);
		end(row.pid);
		row = (struct row){.chip = chips[i], .pid = row.pid, .dram = 5000, .user = 6666};
		see(&world, &row, 1);
		assert(world.ended == 0);
		world_close(&world);
	}
}

UNIT(a_process_that_had_a_book_is_told_from_the_book_alone)
{
	struct world world;
	struct row rows[2];

	world_open(&world);
	for (size_t i = 0; i < 2; i++) {
		rows[i] = (struct row){.chip = 7, .dram = 100};
		rows[i].pid = start(&world, &rows[i].ticks);
	}
	/* The book of the first ended when it executed another program. */
	region_watch_leave_out(world.watch, (struct process_id){rows[0].pid, rows[0].ticks});
	see(&world, rows, 2);
	/* The book of the second is found only now. */
	region_watch_leave_out(world.watch, (struct process_id){rows[1].pid, rows[1].ticks});
	for (size_t i = 0; i < 2; i++) {
		end(rows[i].pid);
		rows[i].ticks = 0;
	}
	see(&world, rows, 2);
	assert(world.ended == 0);
	world_close(&world);
}
