/* SPDX-License-Identifier: Apache-2.0 */

/* In ttmem.smi/1: what each user holds on each device. */

#include "answers/document.h"
#include "base/emit.h"
#include "model/by-user.h"
#include "model/snapshot.h"
#include "model/types.h"

static void document_user_device(struct emit *json, const struct snapshot *snapshot,
				 const struct by_user_row *row)
{
	const struct snapshot_device *device = &snapshot->devices[row->device];

	emit_open_object(json, NULL);
	emit_string(json, "user", row->user);
	emit_u64(json, "user_id", row->user_id);
	emit_u64(json, "device", device->device);
	document_uid(json, "uid", device->unique_id);
	emit_u64(json, "processes", row->processes);
	emit_u64(json, "untracked", row->untracked);
	emit_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		emit_open_object(json, types_name(type));
		emit_u64(json, "used", row->memory[type].used);
		emit_u64(json, "buffers", row->memory[type].buffers);
		emit_string(json, "bound", document_bound(row->memory[type].bound));
		emit_close_object(json);
	}
	emit_close_object(json);
	emit_close_object(json);
}

void document_users(struct emit *json, const struct snapshot *snapshot, const struct by_user *users)
{
	emit_open_array(json, "users");
	for (size_t i = 0; i < users->count; i++)
		document_user_device(json, snapshot, &users->rows[i]);
	emit_close_array(json);
}
