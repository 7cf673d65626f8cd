/* SPDX-License-Identifier: Apache-2.0 */

/* The CSV of ttmem ps and ttmem smi: raw numbers, empty if unknown. */

#include "answers/memory-rows.h"

#include "answers/document.h"
#include "model/by-user.h"
#include "model/snapshot.h"
#include "model/types.h"

#define ROW struct memory_row
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)
#define DEVICE(...) FIELD_VIA(on, struct snapshot_device, __VA_ARGS__)
#define USER(...) FIELD_VIA(whose, struct by_user_row, __VA_ARGS__)
#define MEMORY(...) FIELD_VIA(memory, struct snapshot_memory, __VA_ARGS__)

const struct field memory_fields[] = {
	FIELD("time_ns", TIME, time_ns),
	PROCESS("pid", SHORT, id.pid),
	FIELD("user", TEXT, user),
	USER("user_id", SHORT, user_id),
	USER("processes", NUMBER, processes),
	PROCESS("comm", TEXT, comm),
	PROCESS("alive", BOOL, alive),
	FIELD("device", SHORT, device),
	FIELD_OR_NULL("device_uid", HEX, uid),
	FIELD_OR_NULL("uid", HEX, uid),
	DEVICE("arch", TEXT, arch),
	DEVICE("card", TEXT, card),
	DEVICE("remote", BOOL, remote),
	FIELD("type", NAME, type, .names = types_name),
	MEMORY("used", BYTES, used),
	FIELD_IF(is_occupied, "occupied", BYTES, occupied),
	MEMORY("buffers", NUMBER, buffers),
	MEMORY("peak", BYTES, peak,
	       .unknown = 1 + offsetof(struct snapshot_memory, peak_is_unknown)),
	MEMORY("capacity", BYTES, capacity, .absent = FIELD_NULL),
	MEMORY("bound", NAME, bound, .names = document_bound),
	MEMORY("allocs", NUMBER, allocs),
	MEMORY("frees", NUMBER, frees),
	MEMORY("unknown_frees", NUMBER, unknown_frees),
	MEMORY("double_frees", NUMBER, double_frees),
	MEMORY("last_ns", TIME, last_ns),
	FIELD_END,
};

void memory_put_csv(FILE *out, const struct fields_view *view, struct memory_row row,
		    const struct snapshot_memory *memory)
{
	row.memory = memory;
	row.occupied = memory->occupied.bytes;
	row.is_occupied = snapshot_is_occupied(&memory->occupied, memory->buffers, memory->used);
	fields_csv_row(out, view, &row);
}
