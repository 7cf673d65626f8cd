/* SPDX-License-Identifier: Apache-2.0 */

/* The second table of "ttmem smi --by user": what each user holds on each device. */

#include <inttypes.h>

#include "base/bits.h"
#include "base/table.h"
#include "cli/smi/smi-picture.h"
#include "cli/smi/smi.h"
#include "model/by-user.h"
#include "model/snapshot.h"
#include "model/types.h"

static void smi_users_amount(const struct smi_picture *picture, struct table *table,
			     const struct by_user_row *row, uint32_t folded)
{
	struct snapshot_memory amount = by_user_amount(row, folded);

	if (row->untracked == row->processes)
		table_text(table, "not tracked");
	else
		smi_picture_cell(picture, table, &amount);
}

void smi_users(const struct smi_picture *picture, const struct by_user *list, struct table *table)
{
	static const struct table_column columns[] = {
		{"User", .cut = true},     {"Processes", true},
		{"Dev", true, .least = 5}, {"DRAM", true, .least = 11},
		{"L1", true, .least = 11}, {"Buffers", true, .least = 9},
	};

	table_begin(table, picture->out, columns, ARRAY_SIZE(columns), picture->width);
	table_frame(table);
	for (size_t i = 0; i < list->count; i++) {
		const struct by_user_row *row = &list->rows[i];
		const struct snapshot_device *device = &picture->snapshot->devices[row->device];

		table_text(table, row->user);
		table_format(table, "%zu", row->processes);
		table_format(table, "%" PRIu32 "%s", device->device, device->remote ? "R" : "");
		smi_users_amount(picture, table, row, TYPES_DRAM);
		smi_users_amount(picture, table, row, TYPES_L1);
		table_format(table, "%" PRIu64, by_user_amount(row, AMOUNT_ALL).buffers);
	}
}
