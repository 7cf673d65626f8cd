/* SPDX-License-Identifier: Apache-2.0 */

/* What the documents of the past have in common. */

#include "daemon/recorder/recorder-writing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/sites.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/filter.h"
#include "model/types.h"

#define RECORDER_PAGE_LOOK 64u /* rows between two looks at the clock */

void recorder_writing_deinit(struct recorder_writing *writing)
{
	writing->snapshot = snapshot_free(writing->snapshot);
}

static const char *recorder_keep(struct snapshot *snapshot, const char *text)
{
	return text ? snapshot_text(snapshot, text, strlen(text)) : NULL;
}

int recorder_writing_process(struct recorder_writing *writing, const struct store_process *process,
			     uint64_t time_ns)
{
	struct snapshot_process identity = {
		.id = process->id,
		.ns_pid = process->ns_pid,
		.start_ns = process->start_ns,
		.user_id = process->user_id,
	};
	uint32_t index;

	recorder_writing_deinit(writing);
	writing->snapshot = snapshot_new(time_ns);
	if (!writing->snapshot)
		return -ENOMEM;
	identity.comm = recorder_keep(writing->snapshot, process->comm);
	identity.user = recorder_keep(writing->snapshot, process->user);
	identity.container = recorder_keep(writing->snapshot, process->container);
	identity.source = recorder_keep(writing->snapshot, process->source);
	return snapshot_add_process(writing->snapshot, &identity, &index);
}

int recorder_writing_device(struct recorder_writing *writing, uint32_t device, uint64_t unique_id)
{
	struct snapshot_part *part = snapshot_part(writing->snapshot, 0, device);

	if (!part)
		return -ENOMEM;
	part->facts.unique_id = unique_id;
	return 0;
}

int recorder_writing_check_room(struct recorder_writing *writing)
{
	const struct recorder_scope *scope = writing->scope;
	bool is_full = scope->bytes_max && (uint64_t)ftello(writing->json->out) >= scope->bytes_max;

	if (!scope->is_page)
		return is_full ? -EFBIG : 0;
	/* The clock is not worth a look at every row. */
	if (!is_full && writing->rows % RECORDER_PAGE_LOOK == 0)
		is_full = clock_ms(CLOCK_MONOTONIC) >= scope->page_until_ms;
	if (is_full && writing->rows > 0)
		return 1;
	writing->rows++;
	return 0;
}

/* Splits a list of texts in place. Returns how many there are, at most @max. */
static size_t recorder_split(char *list, const char **texts, size_t max)
{
	static const char separator[] = {STORE_PARTS_SEPARATOR, '\0'};
	size_t count = 0;

	for (char *text; count < max && (text = strsep(&list, separator));)
		texts[count++] = text;
	return count;
}

/* "BYTES BUFFERS NAME" */
static struct call_site recorder_name(const char *text, const char *phase)
{
	char *end;
	struct call_site name = {.bytes = strtoull(text, &end, 10)};

	name.buffers = strtoull(end, &end, 10);
	name.name = end[0] == ' ' && end[1] ? end + 1 : NULL;
	name.phase = name.name ? NULL : phase;
	return name;
}

const char *recorder_writing_recording(const struct recorder_writing *writing,
				       const struct store_process *process,
				       enum flight_files_why why, char ret_path[RECORDER_PATH])
{
	const struct flight_files_owner owner = {
		.user = process->user_id,
		.process = process->id,
	};
	char name[FLIGHT_FILES_NAME_SIZE];
	const char *state = writing->scope->state;

	if (!state || !flight_files_find(state, &owner, why, process->start_ns, name))
		return NULL;
	(void)snprintf(ret_path, RECORDER_PATH, "%s/%s", state, name);
	return ret_path;
}

void recorder_writing_site(struct emit *json, const struct store_part *part, bool of_leak)
{
	CLEANUP_FREE char *names = part->names ? strdup(part->names) : NULL;
	CLEANUP_FREE char *phases = part->phases ? strdup(part->phases) : NULL;
	const char *name_texts[GROUP_NAMES_LISTED], *phase_texts[STORE_PHASES_MAX];
	struct call_site named[GROUP_NAMES_LISTED];
	struct call_stack_room room;
	struct site_row row = {
		.type = part->type,
		.names = {.name = part->name, .count = part->name_count, .names = named},
		.phase = part->phase,
		.phases = phase_texts,
		.stack = call_stack_of(part->stack, &room),
		.bytes = part->bytes,
		.buffers = part->buffers,
		.oldest_ns = part->oldest_ns,
	};

	row.names.listed = recorder_split(names, name_texts, GROUP_NAMES_LISTED);
	for (size_t i = 0; i < row.names.listed; i++)
		named[i] = recorder_name(name_texts[i], part->phase);
	row.phase_count = recorder_split(phases, phase_texts, STORE_PHASES_MAX);
	if (!row.phase_count && part->phase)
		phase_texts[row.phase_count++] = part->phase;
	if (of_leak && !row.phase && row.phase_count)
		row.phase = phase_texts[0];
	fields_put_row(json, of_leak ? site_leak_fields : site_fields, &row);
}

bool recorder_writing_is_wanted(const struct recorder_scope *scope, uint64_t address,
				uint32_t device, uint64_t unique_id, uint32_t type)
{
	if (!scope->has_address)
		return true;
	return address == scope->address &&
	       (!scope->filter || (filter_wants_device(scope->filter, device, unique_id) &&
				   filter_wants_type(scope->filter, type)));
}

static int recorder_filter(const struct query *query, const struct recorder_scope *scope,
			   struct store_filter *ret_filter)
{
	*ret_filter = (struct store_filter){
		.kind = query->kind,
		.sees = scope->sees,
		.pid = query->filter.pid,
		.since_ns = query->since_ns,
		.limit = query->limit ? query->limit : RECORDER_PAGE_DEFAULT,
	};
	return recorder_cursor_read(query->cursor, &ret_filter->after);
}

/* The rows as a JSON array. */
static int recorder_page_rows(struct store_reader *reader, const struct store_filter *filter,
			      struct recorder_writing *writing, const struct recorder_page *page,
			      struct store_cursor *ret_next, char **ret_text)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);
	int r;

	if (!out)
		return -ENOMEM;
	writing->json = &json;
	emit_open_array(&json, NULL);
	r = page->rows(reader, filter, writing, ret_next);
	emit_close_array(&json);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r >= 0)
		*ret_text = cleanup_steal(text);
	return r;
}

#define ROW struct recorder_writing

static void recorder_page_put(struct emit *json, const struct recorder_page *page,
			      const struct recorder_writing *writing,
			      const struct store_cursor *next)
{
	const struct field members[] = {
		{.key = page->list, .kind = FIELD_ROWS, .written = 1 + offsetof(ROW, text)},
		FIELD("hidden", NUMBER, hidden),
		FIELD_END,
	};
	const struct document document = {
		.schema = page->schema, .members = members, .has = DOCUMENT_LIST};
	char text[RECORDER_CURSOR_SIZE];
	struct recorder_notes notes;
	struct document_about about = {
		.time_ns = clock_ns(CLOCK_REALTIME),
		.next = recorder_cursor_write(next, text),
		.notes = notes.texts,
	};

	recorder_cursor_notes(&writing->missing, &notes);
	about.note_count = notes.count;
	about.is_partial = notes.count > 0;
	document_put_about(json, &document, &about, writing);
}

int recorder_writing_page(struct store_reader *reader, const struct query *query,
			  const struct recorder_scope *scope, const struct recorder_page *page,
			  struct emit *json)
{
	struct recorder_scope limited = *scope;
	CLEANUP(recorder_writing_deinit) struct recorder_writing writing = {.scope = &limited};
	CLEANUP_FREE char *text = NULL;
	struct store_filter filter;
	struct store_cursor next;
	int r = recorder_filter(query, scope, &filter);

	if (r == 0 && scope->sees.may_see)
		r = page->hidden(reader, &scope->sees, &writing.hidden);
	if (r < 0)
		return r;
	writing.is_of_process = filter.pid != 0;
	limited.is_page = true;
	limited.bytes_max = RECORDER_PAGE_BYTES;
	limited.page_until_ms = clock_ms(CLOCK_MONOTONIC) + RECORDER_PAGE_MS;
	r = recorder_page_rows(reader, &filter, &writing, page, &next, &text);
	if (r < 0)
		return r;
	writing.text = text;
	recorder_page_put(json, page, &writing, &next);
	return 0;
}
