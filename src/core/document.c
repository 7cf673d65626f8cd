/* SPDX-License-Identifier: Apache-2.0 */

/* What all documents share. */

#include "core/document.h"

#include "base/json.h"
#include "core/snapshot.h"
#include "core/types.h"

void document_open(struct json *json, const char *schema, uint64_t time_ns)
{
	json_open_object(json, NULL);
	json_string(json, "schema", schema);
	json_u64(json, "time_ns", time_ns);
}

/* Lists are given whole for now: there is never a next part. */
void document_list_end(struct json *json, bool exact)
{
	json_bool(json, "exact", exact);
	json_null(json, "next");
}

void document_close(struct json *json, const struct snapshot *snapshot)
{
	char more[64];

	json_open_array(json, "notes");
	for (size_t i = 0; i < snapshot->note_count; i++)
		json_string(json, NULL, snapshot->notes[i]);
	if (snapshot->notes_lost) {
		snprintf(more, sizeof(more), "and %zu more notes", snapshot->notes_lost);
		json_string(json, NULL, more);
	}
	json_close_array(json);
	json_close_object(json);
	json_end(json);
}

void document_uid(struct json *json, const char *key, uint64_t unique_id)
{
	if (unique_id)
		json_hex(json, key, unique_id);
	else
		json_null(json, key);
}

void document_flags(struct json *json, uint32_t flags)
{
	json_open_array(json, "flags");
	for (uint32_t bit = 0; types_flag_name(bit); bit++) {
		if (flags & 1u << bit)
			json_string(json, NULL, types_flag_name(bit));
	}
	json_close_array(json);
}

/* The place of the frames, innermost first. Nobody records stacks yet. */
void document_stack(struct json *json)
{
	json_open_array(json, "stack");
	json_close_array(json);
}

const char *document_bound(uint32_t bound)
{
	switch (bound) {
	case SNAPSHOT_AT_LEAST:
		return "at_least";
	case SNAPSHOT_AT_MOST:
		return "at_most";
	default:
		return "exact";
	}
}
