/* SPDX-License-Identifier: Apache-2.0 */

/* Processes are found by pid and start: a pid is used again. */

#include "model/snapshot.h"

#include "base/testing/unit.h"

static void add(struct snapshot *snapshot, struct process_id id, uint32_t user, bool alive)
{
	const struct snapshot_process process = {
		.id = id, .user_id = user, .alive = alive, .comm = "x", .user = "y"};
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
}

UNIT(a_process_is_found_by_its_pid_and_its_start)
{
	struct snapshot *snapshot = snapshot_new(1);
	const struct process_id before = {7, 100}, now = {7, 200};

	assert(snapshot);
	add(snapshot, before, 1, false);
	add(snapshot, now, 1, true);
	assert(snapshot_find_process(snapshot, before) == &snapshot->processes[0]);
	assert(snapshot_find_process(snapshot, now) == &snapshot->processes[1]);
	assert(!snapshot_find_process(snapshot, (struct process_id){7, 300}));
	assert(!snapshot_find_process(snapshot, (struct process_id){8, 200}));
	snapshot_free(snapshot);
}

UNIT(a_process_that_has_ended_is_not_among_the_living)
{
	struct snapshot *snapshot = snapshot_new(1);
	const struct process_id before = {7, 100}, now = {7, 200};

	assert(snapshot);
	add(snapshot, before, 1, false);
	add(snapshot, now, 1, false);
	add(snapshot, now, 2, true);
	assert(!snapshot_find_living(snapshot, before));
	assert(snapshot_find_process(snapshot, now) == &snapshot->processes[1]);
	assert(snapshot_find_living(snapshot, now) == &snapshot->processes[2]);
	snapshot_free(snapshot);
}
