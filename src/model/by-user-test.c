/* SPDX-License-Identifier: Apache-2.0 */

/* Sums by user and device. */

#include "model/by-user.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/filter.h"
#include "model/snapshot.h"

static void by_user_process(struct snapshot *snapshot, uint32_t user, uint32_t device,
			    uint64_t used, bool alive)
{
	static const char *const names[] = {"ann", "bob"};
	const struct snapshot_process process = {.id.pid = 100 + (uint32_t)snapshot->process_count,
						 .id.start_ticks = 1,
						 .comm = "x",
						 .user = names[user],
						 .user_id = user,
						 .source = "book",
						 .alive = alive,
						 .exact = true};
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, device);
	part->memory[TYPES_DRAM].used = used;
	part->memory[TYPES_DRAM].buffers = 1;
}

static struct snapshot *by_user_start(void)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	by_user_process(snapshot, 0, 1, 10, true);
	by_user_process(snapshot, 1, 0, 30, true);
	by_user_process(snapshot, 0, 0, 5, true);
	by_user_process(snapshot, 0, 0, 6, true);
	by_user_process(snapshot, 0, 0, 100, false);
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

UNIT(users_are_added_up_per_device)
{
	struct snapshot *snapshot = by_user_start();
	struct by_user list = BY_USER_NULL;
	const struct filter all = {0};

	assert(by_user_add(&list, snapshot, &all, false) == 0 && list.count == 3);
	assert(!strcmp(list.rows[0].user, "bob") && list.rows[0].memory[TYPES_DRAM].used == 30);
	assert(!strcmp(list.rows[1].user, "ann") && list.rows[1].processes == 2);
	assert(by_user_amount(&list.rows[1], AMOUNT_ALL).used == 11);
	assert(list.rows[2].memory[TYPES_DRAM].used == 10 && list.rows[2].total == 21);
	by_user_deinit(&list);
	snapshot_free(snapshot);
}

UNIT(ended_processes_count_where_they_are_wanted)
{
	struct snapshot *snapshot = by_user_start();
	struct by_user list = BY_USER_NULL;
	struct filter ann = {.user = "0"};

	assert(by_user_add(&list, snapshot, &ann, true) == 0 && list.count == 2);
	assert(list.rows[0].processes == 3 && list.rows[0].memory[TYPES_DRAM].used == 111);
	by_user_deinit(&list);
	assert(filter_add_device(&ann, "1") == 0);
	assert(by_user_add(&list, snapshot, &ann, true) == 0 && list.count == 1);
	by_user_deinit(&list);
	snapshot_free(snapshot);
}
