/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that are only in a region, and what is told of their ends. */

#include "daemon/recorder/region-watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/unit.h"
#include "model/snapshot.h"
#include "source/proc/proc.h"

struct world {
	struct loop *loop;
	struct proc proc;
	struct region_watch *watch;
	unsigned int woken, ended;
	uint32_t pid;
	uint64_t bytes;
	size_t parts;
};

static void play_wake(void *context)
{
	((struct world *)context)->woken++;
}

static void play_ended(void *context, const struct snapshot *snapshot)
{
	struct world *world = context;
	uint64_t buffers;

	assert(snapshot->process_count == 1 && snapshot->buffer_count == 0);
	world->ended++;
	world->pid = snapshot->processes[0].pid;
	world->parts = snapshot->processes[0].part_count;
	snapshot_process_totals(&snapshot->processes[0], &world->bytes, &buffers);
	assert(buffers == 0);
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
};

static void see(struct world *world, const struct row *rows, size_t count)
{
	struct snapshot *snapshot = snapshot_new(1);
	uint32_t index;

	for (size_t i = 0; i < count; i++) {
		struct snapshot_claim claim = {
			.process = {.pid = rows[i].pid,
				    .ns_pid = rows[i].pid,
				    .start_ticks = rows[i].ticks,
				    .comm = "stock",
				    .user = "u",
				    .source = "tt-metal",
				    .alive = rows[i].ticks > 0,
				    .stale = rows[i].ticks == 0},
			.device = (uint32_t)i,
			.facts = {.unique_id = rows[i].chip},
			.types = 1,
			.used = {rows[i].dram},
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
