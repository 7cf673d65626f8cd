/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaks as JSON. A page may end between two buffers of a process; the next one then has that process
 * again, without its call sites, and says where its list goes on.
 */

#include <errno.h>

#include "answers/buffers.h"
#include "answers/ended.h"
#include "base/cleanup.h"
#include "daemon/recorder/recorder-writing.h"

static const char recorder_buffers[] = "buffers";
static const struct leaks_row recorder_rest; /* of a leak: its lists */

static void recorder_open_leak(struct recorder_writing *writing)
{
	const struct store_leak *leak = &writing->leak;
	char path[RECORDER_PATH];
	struct ended_room room;
	struct leaks_row row = {
		.ended = ended_row_of(&writing->snapshot->processes[0], &leak->ending, &room),
		.has_recording = true,
		.recording = recorder_writing_recording(writing, &leak->process, FLIGHT_FILES_ENDED,
							path),
		.listed = leak->listed,
		.offset = leak->offset,
		.is_totals_only = leak->buffers == 0,
	};

	row.ended.bytes = leak->bytes;
	row.ended.buffers = leak->buffers;
	writing->row = (struct fields_part){.next = leaks_fields};
	fields_put_part(writing->json, &writing->row, &row, "sites");
	writing->missing.totals_only += row.is_totals_only;
	writing->site_buffers = 0;
}

/* Notes what the report has lost. */
static void recorder_miss(struct recorder_writing *writing)
{
	const struct store_leak *leak = &writing->leak;
	struct recorder_missing *missing = &writing->missing;
	bool has_sites = !writing->scope->has_address && leak->offset == 0;

	missing->sites += has_sites && writing->site_buffers < leak->buffers;
	if (leak->listed >= leak->buffers)
		return;
	if (missing->lists < RECORDER_MISSING_TOLD)
		missing->told[missing->lists] = (struct recorder_missing_list){
			.pid = leak->process.id.pid,
			.listed = leak->listed,
			.buffers = leak->buffers,
		};
	missing->lists++;
}

static void recorder_close_leak(struct recorder_writing *writing)
{
	if (!writing->row.list)
		return;
	recorder_miss(writing);
	fields_put_part(writing->json, &writing->row, &recorder_rest, NULL);
}

static int recorder_leak(void *context, const struct store_leak *leak)
{
	struct recorder_writing *writing = context;
	int r;

	recorder_close_leak(writing);
	r = writing->scope->has_address ? 0 : recorder_writing_check_room(writing);
	if (r != 0)
		return r;
	r = recorder_writing_process(writing, &leak->process, leak->ending.ended_ns);
	if (r < 0)
		return r;
	writing->leak = *leak;
	/* With an address it is only told if a buffer of that address comes. */
	if (!writing->scope->has_address)
		recorder_open_leak(writing);
	return 0;
}

static int recorder_leak_site(void *context, const struct store_part *part)
{
	struct recorder_writing *writing = context;

	if (!writing->row.list)
		return 0;
	writing->site_buffers += part->buffers;
	recorder_writing_site(writing->json, part, true);
	return 0;
}

static int recorder_leak_buffer(void *context, const struct snapshot_buffer *buffer,
				uint64_t device_uid)
{
	struct recorder_writing *writing = context;
	struct snapshot_buffer row = *buffer;
	int r;

	if (!recorder_writing_is_wanted(writing->scope, buffer->address, buffer->device, device_uid,
					buffer->type))
		return 0;
	r = recorder_writing_check_room(writing);
	/* Where a page ends is told by the place in the list, so one that ends there has a row. */
	if (r > 0 && writing->row.list != recorder_buffers)
		r = 0;
	if (r == 0)
		r = recorder_writing_device(writing, buffer->device, device_uid);
	if (r != 0)
		return r;
	if (!writing->row.list)
		recorder_open_leak(writing);
	fields_put_part(writing->json, &writing->row, &recorder_rest, recorder_buffers);
	row.process = 0;
	buffers_put_row(writing->json, writing->snapshot, &row);
	return 0;
}

/* The rows of one page. */
static int recorder_leak_rows(struct store_reader *reader, const struct store_filter *filter,
			      struct recorder_writing *writing, struct store_cursor *ret_next)
{
	bool has_buffers = !writing->scope->has_buffers_max || writing->scope->buffers_max > 0;
	const struct store_leak_rows rows = {
		.context = writing,
		.leak = recorder_leak,
		/* A leak is only begun by its first buffer of the address, after the sites. */
		.part = writing->scope->has_address ? NULL : recorder_leak_site,
		.buffer = has_buffers ? recorder_leak_buffer : NULL,
		.buffers_max = writing->scope->buffers_max,
	};
	int r = store_query_leaks(reader, filter, &rows, ret_next);

	recorder_close_leak(writing);
	return r;
}

int recorder_documents_leak_rows(struct store_reader *reader, const struct store_filter *filter,
				 const struct recorder_scope *scope, struct emit *json,
				 struct store_cursor *ret_next)
{
	CLEANUP(recorder_writing_deinit)
	struct recorder_writing writing = {.json = json, .scope = scope};

	return recorder_leak_rows(reader, filter, &writing, ret_next);
}

int recorder_documents_leaks(struct store_reader *reader, const struct query *query,
			     const struct recorder_scope *scope, struct emit *json)
{
	static const struct recorder_page page = {
		.schema = "ttmem.leaks/1",
		.list = "processes",
		.rows = recorder_leak_rows,
		.hidden = store_query_other_leaks,
	};
	struct recorder_scope wanted = *scope;

	wanted.has_buffers_max = (query->given & QUERY_BUFFERS) != 0;
	wanted.buffers_max = query->buffers_max;
	return recorder_writing_page(reader, query, &wanted, &page, json);
}
