/* SPDX-License-Identifier: Apache-2.0 */

/* Columns of all views name fields; devices with equal figures stay in the order in which they are read. */

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

/* Whether the devices are in this order. */
static bool has_order(struct model *model, size_t column, bool falling, uint32_t first,
		      uint32_t second, uint32_t third)
{
	struct list *list = &model->lists[MODEL_DEVICES];

	list->sort = column;
	list->falling = falling;
	model_update(model);
	assert(list->count == 3);
	return list->order[0] == first && list->order[1] == second && list->order[2] == third;
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
		if (pane_devices.rows->columns[column].paint)
			continue;
		assert(has_order(&model, column, false, 0, 1, 2));
		if (has_order(&model, column, true, 2, 0, 1))
			larger++;
		else
			assert(has_order(&model, column, true, 0, 1, 2));
	}
	assert(larger == 4); /* used and share, of DRAM and of L1 */
	model_deinit(&model);
}

UNIT(every_column_and_filter_has_its_fields)
{
	for (unsigned int view = 0; view < MODEL_VIEWS; view++) {
		const struct list_rows *rows = pane_of((enum model_view)view)->rows;
		struct fields_view sought = {.count = 0};

		for (size_t i = 0; i < rows->column_count; i++) {
			const struct list_column *column = &rows->columns[i];

			assert(*list_title(rows, i).title && column->width);
			assert(column->key || column->cell || column->value || column->paint);
			/* Ends the program if there is none. */
			if (column->key &&
			    fields_named(rows->fields, column->key)->kind == FIELD_TIME)
				assert(rows->now);
		}
		if (rows->sought)
			fields_choose(&sought, rows->fields, rows->sought);
		assert(sought.count > 0 || rows->finds);
	}
}
