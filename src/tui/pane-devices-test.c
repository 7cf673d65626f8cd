/* SPDX-License-Identifier: Apache-2.0 */

/* The order of devices: those with equal figures stay in the order in which they are read. */

#include <stdlib.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/list.h"
#include "tui/model.h"
#include "tui/pane.h"

static void add_device(struct snapshot *snapshot, uint32_t process, uint32_t device, uint64_t used)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);

	assert(part);
	part->facts.unique_id = 100 + device;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		part->facts.capacity[type] = 1000;
		part->memory[type].used = used;
		part->memory[type].buffers = used > 0;
	}
}

static int compare(const struct model *model, size_t a, size_t b, size_t column)
{
	return pane_devices.rows->compare(model, a, b, column);
}

UNIT(equal_devices_are_equal_in_every_column_but_their_number)
{
	const struct snapshot_process one = {.id.pid = 7, .comm = "a", .user = "b", .alive = true};
	struct poller_totals *totals = calloc(1, sizeof(*totals));
	struct model model;
	uint32_t index;
	size_t larger = 0;

	assert(totals);
	totals->snapshot = snapshot_new(1);
	assert(totals->snapshot && snapshot_add_process(totals->snapshot, &one, &index) == 0);
	add_device(totals->snapshot, index, 0, 5);
	add_device(totals->snapshot, index, 1, 5);
	add_device(totals->snapshot, index, 2, 7);
	assert(snapshot_finish(totals->snapshot) == 0 && totals->snapshot->device_count == 3);
	model_init(&model);
	model_totals_consume(&model, totals);
	for (size_t column = 1; column < pane_devices.rows->column_count; column++) {
		if (pane_devices.rows->columns[column].fixed)
			continue;
		assert(compare(&model, 0, 1, column) == 0 && compare(&model, 1, 0, column) == 0);
		larger += compare(&model, 2, 0, column) > 0 && compare(&model, 0, 2, column) < 0;
	}
	assert(larger == 4); /* used and share, of DRAM and of L1 */
	model_deinit(&model);
}
