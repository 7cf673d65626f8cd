/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Incidents as JSON. Leaks are in recorder-leaks.c, lines over time in recorder-series.c, all rows
 * of one address in recorder-address.c.
 */

#include "daemon/recorder/recorder-documents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/incidents.h"
#include "base/cleanup.h"
#include "daemon/recorder/recorder-writing.h"
#include "model/types.h"

/* Of a failed allocation, and perhaps of an overlap, holders and sites were awaited. */
static void recorder_close_incident(struct recorder_writing *writing)
{
	const struct incident_row rest = {.has_sites = writing->is_failure};

	if (writing->row.list)
		fields_put_part(writing->json, &writing->row, &rest, NULL);
}

/* How often and when: of the process that was asked for, else of all at that call site. */
static void recorder_incident_figures(const struct recorder_writing *writing,
				      const struct store_incident *incident, bool is_leak,
				      struct snapshot_incident *row)
{
	bool own = writing->is_of_process;
	const struct store_site *site = &incident->site;

	/* The times of the example are those of its process. */
	if (!own) {
		row->time_ns = site->first_ns;
		row->last_ns = site->last_ns;
	}
	if (is_leak) {
		/* All that ever leaked there, which has no one address. */
		row->count = own ? incident->own_buffers : site->buffers;
		row->size = own ? incident->own_bytes : site->bytes;
		row->has_address = false;
	} else {
		row->count = own ? incident->own_count : site->count;
	}
}

/* A call site may have hit several devices, and a row has only the newest. Returns how many. */
static size_t recorder_incident_devices(const char *text, uint64_t devices[BOOK_DEVICES])
{
	size_t count = 0;

	while (text && *text && count < BOOK_DEVICES) {
		char *end;

		devices[count++] = strtoul(text, &end, 10);
		text = *end ? end + 1 : end;
	}
	return count;
}

/* As far as it is known before its holders. */
static void recorder_incident_put(struct recorder_writing *writing,
				  const struct store_incident *incident, bool is_leak,
				  const struct snapshot_incident *example)
{
	char path[RECORDER_PATH];
	uint64_t devices[BOOK_DEVICES];
	struct incident_room room;
	struct incident_row row = incident_row_of(writing->snapshot, example, &room);

	writing->is_failure = strcmp(incident->site.kind, "alloc_failed") == 0;
	row.processes = writing->is_of_process ? 1 : incident->site.processes;
	row.has_devices = !is_leak;
	row.devices = devices;
	row.device_count = recorder_incident_devices(incident->site.devices, devices);
	row.has_recording = writing->is_failure;
	if (row.has_recording)
		row.recording = recorder_writing_recording(writing, &incident->process,
							   FLIGHT_FILES_FAILED, path);
	row.has_holders = writing->is_failure || strcmp(incident->site.kind, "overlap") == 0;
	writing->row = (struct fields_part){.next = incident_fields};
	fields_put_part(writing->json, &writing->row, &row, row.has_holders ? "holders" : NULL);
}

static int recorder_incident(void *context, const struct store_incident *incident)
{
	struct recorder_writing *writing = context;
	struct snapshot_incident row = incident->example;
	bool is_leak = strcmp(incident->site.kind, "leak") == 0;
	int r;

	recorder_close_incident(writing);
	if (writing->scope->has_address &&
	    (is_leak || !row.has_address ||
	     !recorder_writing_is_wanted(writing->scope, row.address, row.device,
					 incident->device_uid, row.type)))
		return 0;
	r = recorder_writing_check_room(writing);
	if (r == 0)
		r = recorder_writing_process(writing, &incident->process, incident->site.last_ns);
	if (r == 0)
		r = recorder_writing_device(writing, row.device, incident->device_uid);
	if (r != 0)
		return r;
	row.process = 0;
	recorder_incident_figures(writing, incident, is_leak, &row);
	recorder_incident_put(writing, incident, is_leak, &row);
	return 0;
}

/* Totals of a process, which are everybody's. */
static int recorder_incident_holder(void *context, const struct store_holder *holder)
{
	struct recorder_writing *writing = context;
	const struct incident_holder row = {
		.pid = holder->process.id.pid,
		.comm = holder->process.comm,
		.user_id = holder->process.user_id,
		.type = holder->type,
		.used = holder->used,
		.buffers = holder->buffers,
	};

	if (writing->row.list)
		fields_put_row(writing->json, incident_holders, &row);
	return 0;
}

static int recorder_incident_site(void *context, const struct store_part *part)
{
	static const struct incident_row rest;
	struct recorder_writing *writing = context;

	/* They are over all processes, and names are details: not for who may see only some. */
	if (!writing->row.list || !writing->is_failure || writing->scope->sees.may_see)
		return 0;
	fields_put_part(writing->json, &writing->row, &rest, "sites");
	recorder_writing_site(writing->json, part, false);
	return 0;
}

/* The rows of one page. */
static int recorder_incident_rows(struct store_reader *reader, const struct store_filter *filter,
				  struct recorder_writing *writing, struct store_cursor *ret_next)
{
	const struct store_incident_rows rows = {
		.context = writing,
		.incident = recorder_incident,
		.holder = recorder_incident_holder,
		.part = recorder_incident_site,
	};
	int r = store_query_incidents(reader, filter, &rows, ret_next);

	recorder_close_incident(writing);
	return r;
}

int recorder_documents_incident_rows(struct store_reader *reader, const struct store_filter *filter,
				     const struct recorder_scope *scope, struct emit *json,
				     struct store_cursor *ret_next)
{
	CLEANUP(recorder_writing_deinit)
	struct recorder_writing writing = {
		.json = json, .scope = scope, .is_of_process = filter->pid != 0};

	return recorder_incident_rows(reader, filter, &writing, ret_next);
}

/* 0, or -EINVAL for a word that is no kind: an empty list would say that all is well. */
static int recorder_check_kind(struct store_reader *reader, const char *kind)
{
	int r;

	if (!kind || types_find_incident_kind(kind) < TYPES_INCIDENTS)
		return 0;
	r = store_query_has_kind(reader, kind);
	return r == 0 ? -EINVAL : r < 0 ? r : 0;
}

int recorder_documents_incidents(struct store_reader *reader, const struct query *query,
				 const struct recorder_scope *scope, struct emit *json)
{
	static const struct recorder_page page = {
		.schema = "ttmem.incidents/1",
		.list = "incidents",
		.rows = recorder_incident_rows,
		.hidden = store_query_other_incidents,
	};
	int r = recorder_check_kind(reader, query->kind);

	return r < 0 ? r : recorder_writing_page(reader, query, scope, &page, json);
}
