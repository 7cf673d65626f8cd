/* SPDX-License-Identifier: Apache-2.0 */

/* The old dashboard's documents. */

#include "answers/devices.h"

#include "answers/document.h"
#include "answers/fields.h"

#define ROW struct devices_row

static const struct field devices_fields[] = {
	FIELD("device_id", NUMBER, device, .most = BOOK_DEVICES - 1),
	FIELD("dram_allocated", BYTES, used[TYPES_DRAM]),
	FIELD("l1_allocated", BYTES, used[TYPES_L1]),
	FIELD("system_memory_allocated", BYTES, used[TYPES_SYSTEM_MEMORY]),
	FIELD("l1_small_allocated", BYTES, used[TYPES_L1_SMALL]),
	FIELD("trace_allocated", BYTES, used[TYPES_TRACE]),
	FIELD("cb_allocated", BYTES, used[TYPES_CB]),
	FIELD("kernel_allocated", BYTES, used[TYPES_KERNEL]),
	FIELD("buffers", NUMBER, buffers, .says = "live ones of all types"),
	FIELD_END,
};

#undef ROW
#define ROW struct devices_answer

static const struct field devices_members[] = {
	FIELD_ARRAY_AT("devices", ROWS, rows, count, .fields = devices_fields),
	FIELD_END,
};

const struct document devices_document = {
	.schema = "ttmem.devices/1",
	.title = "/api/devices and /api/devices/N/stats: bytes in use, under the names of the old "
		 "dashboard",
	.members = devices_members,
	.has = DOCUMENT_PLAIN,
};

const struct document devices_one = {
	.schema = "ttmem.devices/1",
	.title = "/api/devices/N/stats: an element of /api/devices",
	.members = devices_fields,
	.has = DOCUMENT_PLAIN,
};
