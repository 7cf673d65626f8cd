/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of the texts. */

#include "recording/format/texts.h"

#include "model/sites/namer.h"

#define ROW struct recording_head

const struct field recording_head_fields[] = {
	FIELD("program", TEXT, program),
	FIELD("host", TEXT, host),
	FIELD("kernel", TEXT, kernel),
	FIELD("machine", TEXT, machine),
	FIELD("start_ns", TIME, start_ns),
	FIELD("recorder", SHORT, recorder),
	FIELD_OR_NOTHING("command", TEXT, command),
	FIELD_ARRAY_AT("argv", TEXTS, argv, argc, .absent = FIELD_NOTHING),
	FIELD_END,
};

#undef ROW
#define ROW struct namer_name

static const struct field recording_name[] = {
	FIELD("function", TEXT, function),
	FIELD("file", TEXT, file),
	FIELD("line", SHORT, line),
	FIELD_END,
};

#undef ROW
#define ROW struct recording_place

static const struct field recording_place[] = {
	FIELD("address", NUMBER, address),
	FIELD_ARRAY_AT("frames", ROWS, names, count, .fields = recording_name),
	FIELD_END,
};

#undef ROW
#define ROW struct recording_names_file

static const struct field recording_names_file[] = {
	FIELD("path", TEXT, path),
	FIELD("build_id", TEXT, build_id),
	FIELD_ARRAY_AT("names", ROWS, places, count, .fields = recording_place),
	FIELD_END,
};

#undef ROW
#define ROW struct recording_names

const struct field recording_names_fields[] = {
	FIELD_ARRAY_AT("files", ROWS, files, count, .fields = recording_names_file),
	FIELD_END,
};
