/* SPDX-License-Identifier: Apache-2.0 */

/* In ttmem.smi/1: what each user holds on each device. */

#include "answers/document-processes.h"

#include "answers/document.h"
#include "base/emit.h"
#include "model/by-user.h"
#include "model/snapshot.h"

struct document_user {
	const struct by_user_row *row;
	const struct snapshot_device *device;
};

#define ROW struct snapshot_memory

static const struct field document_user_memory[] = {
	FIELD("used", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD("bound", NAME, bound, .names = document_bound),
	FIELD_END,
};

#undef ROW
#define ROW struct document_user
#define USER(...) FIELD_VIA(row, struct by_user_row, __VA_ARGS__)
#define DEVICE(...) FIELD_VIA(device, struct snapshot_device, __VA_ARGS__)

static const struct field document_user[] = {
	USER("user", TEXT, user),
	USER("user_id", SHORT, user_id),
	DEVICE("device", SHORT, device, .most = BOOK_DEVICES - 1),
	DEVICE("uid", HEX, unique_id, .absent = FIELD_NULL),
	USER("processes", NUMBER, processes),
	USER("untracked", NUMBER, untracked),
	{.key = "memory",
	 .kind = FIELD_TYPES,
	 .via = 1 + offsetof(ROW, row),
	 .offset = offsetof(struct by_user_row, memory),
	 .size = sizeof(struct snapshot_memory),
	 .fields = document_user_memory},
	FIELD_END,
};

const struct field document_users[] = {
	FIELD_LISTED("users", document_user),
	FIELD_END,
};

void document_put_users(struct emit *json, const char *key, const void *row)
{
	const struct document_scope *scope = row;

	if (!scope->users)
		return;
	emit_open_array(json, key);
	for (size_t i = 0; i < scope->users->count; i++) {
		const struct by_user_row *held = &scope->users->rows[i];
		const struct document_user user = {
			.row = held,
			.device = &scope->snapshot->devices[held->device],
		};

		fields_put_row(json, document_user, &user);
	}
	emit_close_array(json);
}
