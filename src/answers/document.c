/* SPDX-License-Identifier: Apache-2.0 */

/* Parts that all documents share. */

#include "answers/document.h"
#include "answers/document-take.h"

#include <errno.h>
#include <string.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/snapshot.h"
#include "model/types.h"

void document_open(struct emit *json, const char *schema, uint64_t time_ns)
{
	emit_open_object(json, NULL);
	emit_string(json, "schema", schema);
	emit_u64(json, "time_ns", time_ns);
}

#define ROW struct snapshot_recording

const struct field document_recording_fields[] = {
	FIELD("file", TEXT, file, .says = "as it was given; over HTTP without its folder"),
	FIELD("start_ns", TIME, start_ns, .says = "its first moment"),
	FIELD("end_ns", TIME, end_ns, .says = "its last moment"),
	FIELD("events", NUMBER, events, .says = "that are in it"),
	FIELD("missed", NUMBER, missed,
	      .says = "events that it lacks; totals are exact all the same"),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_reach

const struct field document_reach_fields[] = {
	FIELD_OR_NULL("exact_from_ns", TIME, exact_from_ns,
		      .says = "since when moments are exact; null: no flight recorder"),
	FIELD_OR_NULL("sums_from_ns", TIME, sums_from_ns,
		      .says = "since when sums are known; null: no history"),
	FIELD_END,
};

/* What documents say of themselves; a pointer is NULL if it is left out or null. */
struct document_head {
	const struct snapshot_recording *recording;
	const struct document_moment *moment;
};

struct document_moment {
	uint64_t asked_ns;
	const char *kind;
	struct snapshot_reach reach;
};

#undef ROW
#define ROW struct document_moment

static const struct field document_moment_fields[] = {
	FIELD("asked_ns", TIME, asked_ns, .says = "\"at\""),
	FIELD("kind", TEXT, kind,
	      .says = "exact: restored from the flight recorder, everything is as it was; sums: "
		      "bytes and buffers of about that time, from the history"),
	FIELD_MORE_OF(reach, document_reach_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct document_head

static const struct field document_from[] = {
	FIELD_POINTED("recording", recording, document_recording_fields, .absent = FIELD_NOTHING,
		      .says = "with --from: the recording, of which time_ns is a moment"),
	FIELD_END,
};

static const struct field document_at[] = {
	FIELD_POINTED("moment", moment, document_moment_fields, .absent = FIELD_NULL,
		      .says = "over HTTP with \"at\": which moment of the past; null: now"),
	FIELD_END,
};

void document_begin(struct emit *json, const struct document *document,
		    const struct snapshot *snapshot)
{
	const struct snapshot_moment *moment = &snapshot->moment;
	const struct document_moment at = {
		.asked_ns = moment->asked_ns,
		.kind = moment->kind == SNAPSHOT_MOMENT_EXACT ? "exact" : "sums",
		.reach = moment->reach,
	};
	const struct document_head head = {
		.recording = snapshot->recording.file ? &snapshot->recording : NULL,
		.moment = moment->kind == SNAPSHOT_NOW ? NULL : &at,
	};

	document_open(json, document->schema, snapshot->time_ns);
	if (document->has & DOCUMENT_FROM)
		fields_put(json, document_from, &head);
	if (document->has & DOCUMENT_MOMENT)
		fields_put(json, document_at, &head);
}

void document_put(struct emit *json, const struct document *document,
		  const struct snapshot *snapshot, const void *row)
{
	char next[PAGE_CURSOR_TEXT_SIZE];

	document_begin(json, document, snapshot);
	fields_put(json, document->members, row);
	if (document->has & DOCUMENT_LIST)
		document_page_end(json, snapshot->exact,
				  snapshot->has_next ? page_cursor_format(&snapshot->next, next)
						     : NULL);
	document_close(json, snapshot);
}

#undef ROW
#define ROW struct document_about

static const struct field document_time[] = {
	FIELD("time_ns", TIME, time_ns, .says = "nanoseconds since 1970, CLOCK_REALTIME"),
	FIELD_END,
};

static const struct field document_list[] = {
	FIELD("exact", NOT, is_partial, .says = "every figure of the list is exact"),
	FIELD_OR_NULL("next", TEXT, next,
		      .says = "where the next part of the list begins; null: it is complete"),
	FIELD_END,
};

static const struct field document_notes[] = {
	FIELD_ARRAY_AT("notes", TEXTS, notes, note_count,
		       .says = "what a person should know, one line each"),
	FIELD_END,
};

void document_put_schema(struct emit *json, const struct document *document)
{
	bool is_plain = document->has & DOCUMENT_PLAIN;
	const struct field *const parts[] = {
		is_plain ? NULL : document_time,
		document->members,
		document->has & DOCUMENT_LIST ? document_list : NULL,
		is_plain ? NULL : document_notes,
	};

	emit_open_object(json, NULL);
	emit_string(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	emit_string(json, "title", document->title);
	emit_string(json, "type", "object");
	emit_open_array(json, "required");
	if (!is_plain)
		emit_string(json, NULL, "schema");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i])
			fields_put_required(json, parts[i]);
	}
	emit_close_array(json);
	emit_open_object(json, "properties");
	if (!is_plain) {
		emit_open_object(json, "schema");
		emit_string(json, "const", document->schema);
		emit_close_object(json);
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i])
			fields_put_properties(json, parts[i]);
	}
	if (document->has & DOCUMENT_FROM)
		fields_put_properties(json, document_from);
	if (document->has & DOCUMENT_MOMENT)
		fields_put_properties(json, document_at);
	emit_close_object(json);
	emit_close_object(json);
}

void document_page_end(struct emit *json, bool exact, const char *next)
{
	emit_bool(json, "exact", exact);
	emit_string(json, "next", next);
}

void document_list_end(struct emit *json, bool exact)
{
	document_page_end(json, exact, NULL);
}

static void document_open_notes(struct emit *json, const char *const *notes, size_t count)
{
	emit_open_array(json, "notes");
	for (size_t i = 0; i < count; i++)
		emit_string(json, NULL, notes[i]);
}

static void document_close_notes(struct emit *json)
{
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}

void document_close(struct emit *json, const struct snapshot *snapshot)
{
	char more[64];

	document_open_notes(json, snapshot->notes, snapshot->note_count);
	if (snapshot->notes_lost) {
		snprintf(more, sizeof(more), "and %zu more notes", snapshot->notes_lost);
		emit_string(json, NULL, more);
	}
	document_close_notes(json);
}

void document_close_bare(struct emit *json)
{
	document_open_notes(json, NULL, 0);
	document_close_notes(json);
}

void document_put_about(struct emit *json, const struct document *document,
			const struct document_about *about, const void *row)
{
	if (document->has & DOCUMENT_PLAIN) {
		fields_put_row(json, document->members, row);
		emit_end(json);
		return;
	}
	document_open(json, document->schema, about->time_ns);
	fields_put(json, document->members, row);
	if (document->has & DOCUMENT_LIST)
		fields_put(json, document_list, about);
	fields_put(json, document_notes, about);
	emit_close_object(json);
	emit_end(json);
}

int document_take(const struct json_t *json, const struct document *document,
		  struct document_about *ret_about, void *ret_row, struct pool *pool)
{
	const struct field *const parts[] = {document_time, document_list, document_notes};
	const char *schema = document_schema(json);
	int r = 0;

	if (!schema || strcmp(schema, document->schema) != 0)
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = fields_take(json, parts[i], ret_about, pool);
	return r == 0 ? fields_take(json, document->members, ret_row, pool) : r;
}

void document_uid(struct emit *json, const char *key, uint64_t unique_id)
{
	if (unique_id)
		emit_hex(json, key, unique_id);
	else
		emit_null(json, key);
}

void document_flags(struct emit *json, uint32_t flags)
{
	emit_open_array(json, "flags");
	for (uint32_t bit = 0; types_flag_name(bit); bit++) {
		if (flags & 1u << bit)
			emit_string(json, NULL, types_flag_name(bit));
	}
	emit_close_array(json);
}

const char *document_bound(uint32_t bound)
{
	switch (bound) {
	case SNAPSHOT_AT_LEAST:
		return "at_least";
	case SNAPSHOT_AT_MOST:
		return "at_most";
	case SNAPSHOT_EXACT:
		return "exact";
	default:
		return NULL;
	}
}

const char *document_source(uint32_t source)
{
	static const char *const names[] = {"book", "socket", "kernel", "tt-metal", "driver"};

	return source < ARRAY_SIZE(names) ? names[source] : NULL;
}
