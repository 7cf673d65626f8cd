/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.series/1. */

#include "answers/series.h"

#include "answers/document.h"
#include "model/types.h"

#define ROW struct series_row

const struct field series_fields[] = {
	FIELD_OR_NULL("pid", SHORT, pid, .least = 1, .says = "null: the whole device"),
	FIELD("device", SHORT, device),
	FIELD_OR_NULL("uid", HEX, device_uid, .says = "unique id of the device; null: not known"),
	FIELD_OR_NULL("type", NAME, type, .names = types_name),
	FIELD("step_s", DOUBLE, step_s,
	      .says = "seconds that a point stands for: 0.01, 0.1, 1, 10 or 60"),
	FIELD_ARRAY_AT(
		"points", TUPLES, points, point_count,
		.says = "[time_ns, used, buffers, used_max], oldest first: the last values of "
			"the step, and its largest"),
	FIELD_END,
};

#undef ROW
#define ROW struct series_answer

static const struct field series_members[] = {
	FIELD_ARRAY_AT("series", ROWS, rows, count, .fields = series_fields),
	FIELD_END,
};

const struct document series_document = {
	.schema = "ttmem.series/1",
	.title = "lines over time: what devices and processes held",
	.members = series_members,
	.has = DOCUMENT_LIST,
};
