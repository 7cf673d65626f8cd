/* SPDX-License-Identifier: Apache-2.0 */

/* The CSV of "ttmem smi": one row per device and type, or per user, device and type. */

#include "cli/smi/smi.h"

#include "answers/memory-rows.h"
#include "model/by-user.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/types.h"

static void smi_csv_rows(FILE *out, const struct fields_view *view, struct memory_row row,
			 const struct snapshot_memory *memory)
{
	row.device = row.on->device;
	row.uid = row.on->unique_id;
	for (row.type = 0; row.type < BOOK_TYPES; row.type++)
		memory_put_csv(out, view, row, &memory[row.type]);
}

void smi_csv(FILE *out, const struct snapshot *snapshot, const struct filter *filter)
{
	struct fields_view view;

	fields_choose(&view, memory_fields, MEMORY_OF_DEVICE);
	fputs(MEMORY_OF_DEVICE "\n", out);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		const struct memory_row row = {.time_ns = snapshot->time_ns, .on = device};

		if (filter_wants_device(filter, device->device, device->unique_id))
			smi_csv_rows(out, &view, row, device->memory);
	}
}

void smi_users_csv(FILE *out, const struct snapshot *snapshot, const struct by_user *list)
{
	struct fields_view view;

	fields_choose(&view, memory_fields, MEMORY_OF_USER);
	fputs(MEMORY_OF_USER "\n", out);
	for (size_t i = 0; i < list->count; i++) {
		const struct by_user_row *user = &list->rows[i];
		const struct memory_row row = {
			.time_ns = snapshot->time_ns,
			.on = &snapshot->devices[user->device],
			.whose = user,
			.user = user->user,
		};

		smi_csv_rows(out, &view, row, user->memory);
	}
}
