/* SPDX-License-Identifier: Apache-2.0 */

/* What the documents of the past have in common. */

#include "daemon/recorder/recorder-writing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
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

void recorder_writing_open(struct recorder_writing *writing, enum recorder_part part)
{
	static const char *const names[] = {
		[RECORDER_SITES] = "sites",
		[RECORDER_BUFFERS] = "buffers",
		[RECORDER_HOLDERS] = "holders",
	};

	if (writing->part == part)
		return;
	if (writing->part != RECORDER_NOTHING)
		emit_close_array(writing->json);
	if (part != RECORDER_NOTHING)
		emit_open_array(writing->json, names[part]);
	writing->part = part;
}

/* The phase that stands for all, and the list. */
static void recorder_phases(struct emit *json, const struct store_part *part)
{
	CLEANUP_FREE char *copy = part->phases ? strdup(part->phases) : NULL;
	static const char separator[] = {STORE_PARTS_SEPARATOR, '\0'};
	char *rest = copy, *phase = copy ? strsep(&rest, separator) : NULL;

	emit_string(json, "phase", part->phase ? part->phase : phase);
	emit_open_array(json, "phases");
	if (!phase && part->phase)
		emit_string(json, NULL, part->phase);
	for (; phase; phase = strsep(&rest, separator))
		emit_string(json, NULL, phase);
	emit_close_array(json);
}

/* The list of the largest, and how many there are. */
static void recorder_names(struct emit *json, const struct store_part *part)
{
	CLEANUP_FREE char *copy = part->names ? strdup(part->names) : NULL;
	static const char separator[] = {STORE_PARTS_SEPARATOR, '\0'};
	char *rest = copy, *name;

	if (part->name_count)
		emit_u64(json, "name_count", part->name_count);
	else
		emit_null(json, "name_count");
	emit_open_array(json, "names");
	while ((name = strsep(&rest, separator))) {
		char *end;
		struct call_site group = {.bytes = strtoull(name, &end, 10)};

		group.buffers = strtoull(end, &end, 10);
		group.name = end[0] == ' ' && end[1] ? end + 1 : NULL;
		group.phase = group.name ? NULL : part->phase;
		document_name(json, &group);
	}
	emit_close_array(json);
}

void recorder_writing_recording(const struct recorder_writing *writing,
				const struct store_process *process, enum flight_files_why why)
{
	const struct flight_files_owner owner = {
		.user = process->user_id,
		.process = process->id,
	};
	char path[PATH_MAX + FLIGHT_FILES_NAME_SIZE], name[FLIGHT_FILES_NAME_SIZE];
	const char *state = writing->scope->state;

	if (!state || !flight_files_find(state, &owner, why, process->start_ns, name)) {
		emit_null(writing->json, "recording");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", state, name);
	emit_string(writing->json, "recording", path);
}

void recorder_writing_site(struct emit *json, const struct store_part *part, bool of_leak)
{
	emit_open_object(json, NULL);
	emit_string(json, "type", types_name(part->type));
	emit_string(json, "name", part->name);
	recorder_names(json, part);
	if (of_leak)
		recorder_phases(json, part);
	else
		emit_string(json, "phase", part->phase);
	document_stack(json, part->stack);
	emit_u64(json, "bytes", part->bytes);
	emit_u64(json, "buffers", part->buffers);
	if (of_leak)
		emit_u64(json, "oldest_ns", part->oldest_ns);
	emit_close_object(json);
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

static int recorder_filter(const struct query_past *query, const struct recorder_scope *scope,
			   struct store_filter *ret_filter)
{
	*ret_filter = (struct store_filter){
		.kind = query->kind,
		.sees = scope->sees,
		.pid = query->pid,
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

int recorder_writing_page(struct store_reader *reader, const struct query_past *query,
			  const struct recorder_scope *scope, const struct recorder_page *page,
			  struct emit *json)
{
	struct recorder_scope limited = *scope;
	CLEANUP(recorder_writing_deinit) struct recorder_writing writing = {.scope = &limited};
	CLEANUP_FREE char *text = NULL;
	struct store_filter filter;
	struct store_cursor next;
	uint64_t hidden = 0;
	int r = recorder_filter(query, scope, &filter);

	if (r == 0 && scope->sees.may_see)
		r = page->hidden(reader, &scope->sees, &hidden);
	if (r < 0)
		return r;
	writing.is_of_process = filter.pid != 0;
	limited.is_page = true;
	limited.bytes_max = RECORDER_PAGE_BYTES;
	limited.page_until_ms = clock_ms(CLOCK_MONOTONIC) + RECORDER_PAGE_MS;
	r = recorder_page_rows(reader, &filter, &writing, page, &next, &text);
	if (r < 0)
		return r;
	document_open(json, page->schema, clock_ns(CLOCK_REALTIME));
	emit_raw(json, page->list, text);
	emit_u64(json, "hidden", hidden);
	recorder_cursor_end(json, &next, &writing.missing);
	return 0;
}
