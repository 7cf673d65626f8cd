/* SPDX-License-Identifier: Apache-2.0 */

/* Which processes are the largest, and what a buffer takes. */

#include "model/amount.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"

static struct snapshot *amount_start(const uint64_t *used, uint32_t count)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	for (uint32_t i = 0; i < count; i++) {
		const struct snapshot_process process = {.id.pid = 100 + i,
							 .id.start_ticks = 1,
							 .comm = "x",
							 .user = "x",
							 .source = "book",
							 .alive = true,
							 .exact = true};
		struct snapshot_part *part;
		uint32_t index;

		assert(snapshot_add_process(snapshot, &process, &index) == 0);
		part = snapshot_part(snapshot, index, 0);
		part->memory[0].used = used[i];
		part->memory[0].buffers = 1;
	}
	return snapshot;
}

UNIT(the_largest_processes_come_first)
{
	static const uint64_t used[] = {3, 9, 1, 7, 5};
	struct snapshot *snapshot = amount_start(used, 5);
	const struct snapshot_process *list[8];

	assert(amount_largest(snapshot, true, 8, list) == 5);
	assert(list[0]->id.pid == 101 && list[1]->id.pid == 103 && list[2]->id.pid == 104);
	assert(list[3]->id.pid == 100 && list[4]->id.pid == 102);
	assert(amount_largest(snapshot, true, 2, list) == 2);
	assert(list[0]->id.pid == 101 && list[1]->id.pid == 103);
	snapshot_free(snapshot);
}

UNIT(only_living_and_tracked_processes_are_among_the_largest)
{
	static const uint64_t used[] = {9, 8, 7, 6};
	struct snapshot *snapshot = amount_start(used, 4);
	const struct snapshot_process *list[4];

	snapshot->processes[0].alive = false;
	snapshot->processes[1].untracked = true;
	snapshot->processes[2].parts[0].memory[0].buffers = 0; /* a region tells only bytes */
	assert(amount_largest(snapshot, false, 4, list) == 2 && list[0]->id.pid == 102);
	assert(amount_largest(snapshot, true, 4, list) == 1 && list[0]->id.pid == 103);
	snapshot_free(snapshot);
}

static bool amount_is_of_user(const void *context, const struct snapshot_process *process)
{
	const uint32_t *user = context;

	return process->user_id == *user;
}

UNIT(large_processes_of_others_take_no_place_of_those_that_are_wanted)
{
	static const uint64_t used[] = {9, 1, 8, 2};
	const uint32_t user = 7;
	const struct amount_choice choice = {.wants = amount_is_of_user, .context = &user};
	struct snapshot *snapshot = amount_start(used, 4);
	const struct snapshot_process *list[2];

	snapshot->processes[1].user_id = user;
	snapshot->processes[3].user_id = user;
	assert(amount_largest_of(snapshot, &choice, 2, list) == 2);
	assert(list[0]->id.pid == 103 && list[1]->id.pid == 101);
	snapshot_free(snapshot);
}

UNIT(the_text_says_why_a_small_buffer_takes_much)
{
	struct snapshot_buffer buffer = {.size = 2048, .size_per_bank = 2048, .banks = 12};
	char text[AMOUNT_TAKES_SIZE];

	assert(!strcmp(amount_takes(&buffer, text), "takes 24.0 KiB: 2.0 KiB in each of 12 banks"));
	buffer.banks = 1;
	assert(!strcmp(amount_takes(&buffer, text), "takes 2.0 KiB: 2.0 KiB in 1 bank"));
	buffer.size_per_bank = 0;
	assert(!strcmp(amount_takes(&buffer, text), ""));
	/* Also if it has a shape of its own. */
	buffer = (struct snapshot_buffer){
		.flags = SNAPSHOT_FLAG_ALIAS, .size_per_bank = 2048, .banks = 12};
	assert(!strcmp(amount_takes(&buffer, text), "takes nothing: it lies in another buffer"));
}
