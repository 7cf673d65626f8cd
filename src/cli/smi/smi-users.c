/* SPDX-License-Identifier: Apache-2.0 */

/* The second table of "ttmem smi --by user": what each user holds on each device. */

#include <inttypes.h>

#include "answers/document.h"
#include "base/text.h"
#include "cli/smi/smi-picture.h"
#include "cli/smi/smi.h"
#include "model/by-user.h"
#include "model/snapshot.h"
#include "model/types.h"

#define SMI_USERS_COUNT 9u /* columns of "Processes" and "Buffers" */
#define SMI_USERS_DEVICE 5u

static void smi_users_amount(const struct smi_picture *picture, const struct by_user_row *row,
			     uint32_t folded)
{
	struct snapshot_memory amount = by_user_amount(row, folded);

	fputc(' ', picture->out);
	if (row->untracked == row->processes)
		smi_picture_right(picture, "not tracked", picture->size + 1);
	else
		smi_picture_size(picture, &amount, picture->size + 1);
}

static void smi_users_row(const struct smi_picture *picture, const struct by_user_row *row,
			  unsigned int name)
{
	const struct snapshot_device *device = &picture->snapshot->devices[row->device];
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32 "%s", device->device,
		 device->remote ? "R" : "");
	fputs("| ", picture->out);
	smi_picture_left(picture, row->user, name);
	fputc(' ', picture->out);
	smi_picture_count(picture, row->processes, SMI_USERS_COUNT);
	fputc(' ', picture->out);
	smi_picture_right(picture, number, SMI_USERS_DEVICE);
	smi_users_amount(picture, row, TYPES_DRAM);
	smi_users_amount(picture, row, TYPES_L1);
	fputc(' ', picture->out);
	smi_picture_count(picture, by_user_amount(row, AMOUNT_ALL).buffers, SMI_USERS_COUNT);
	fputs(" |\n", picture->out);
}

void smi_users(const struct smi_picture *picture, const struct by_user *list)
{
	unsigned int name = picture->width - 4 - 2 * (SMI_USERS_COUNT + 1) - SMI_USERS_DEVICE - 1 -
			    2 * (picture->size + 2);
	int size = (int)picture->size + 1;

	fprintf(picture->out, "| %-*s %*s %*s %*s %*s %*s |\n", (int)name, "User",
		(int)SMI_USERS_COUNT, "Processes", (int)SMI_USERS_DEVICE, "Dev", size, "DRAM", size,
		"L1", (int)SMI_USERS_COUNT, "Buffers");
	smi_picture_rule(picture);
	for (size_t i = 0; i < list->count; i++)
		smi_users_row(picture, &list->rows[i], name);
	smi_picture_rule(picture);
}

void smi_users_csv(FILE *out, const struct snapshot *snapshot, const struct by_user *list)
{
	fputs("time_ns,user,user_id,processes,device,uid,type,used,buffers,bound\n", out);
	for (size_t i = 0; i < list->count; i++) {
		const struct by_user_row *row = &list->rows[i];
		const struct snapshot_device *device = &snapshot->devices[row->device];

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			fprintf(out, "%" PRIu64 ",", snapshot->time_ns);
			text_put_csv(out, row->user);
			fprintf(out, ",%" PRIu32 ",%zu,%" PRIu32 ",", row->user_id, row->processes,
				device->device);
			if (device->unique_id)
				fprintf(out, "0x%" PRIx64, device->unique_id);
			fprintf(out, ",%s,%" PRIu64 ",%" PRIu64 ",%s\n", types_name(type),
				row->memory[type].used, row->memory[type].buffers,
				document_bound(row->memory[type].bound));
		}
	}
}
