/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaks and incidents as JSON, written while the rows come out of the database. A row of the document is
 * begun by one callback, goes on with others and is ended by the next: what is open is remembered here.
 * Lines over time are in recorder-series.c, all rows of one address in recorder-address.c.
 *
 * Each row's process is put into a small snapshot of its own, so that buffers and incidents of the past
 * are written by the same functions as those of the present.
 */

#include "daemon/recorder/recorder-documents.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "daemon/recorder/recorder-cursor.h"
#include "model/filter.h"
#include "model/json/document.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "store/store.h"

/* What a row has open. */
enum recorder_part {
	RECORDER_NOTHING,
	RECORDER_SITES,
	RECORDER_BUFFERS,
	RECORDER_HOLDERS,
};

struct recorder_writing {
	struct emit *json;
	const struct recorder_scope *scope;
	bool is_open; /* a row is */
	enum recorder_part part;
	bool is_failure;        /* the row is of a failed allocation */
	bool is_overlap;        /* or of an overlap */
	size_t totals_only;     /* leaks so far of which no buffers are known */
	struct store_leak leak; /* the row's; its texts are the snapshot's */
	struct snapshot *snapshot;
};

static void recorder_forget(struct recorder_writing *writing)
{
	writing->snapshot = snapshot_free(writing->snapshot);
}

static const char *recorder_keep(struct snapshot *snapshot, const char *text)
{
	return text ? snapshot_text(snapshot, text, strlen(text)) : NULL;
}

/* A snapshot with one process. */
static int recorder_remember(struct recorder_writing *writing, const struct store_process *process,
			     uint64_t time_ns)
{
	struct snapshot_process identity = {
		.pid = process->pid,
		.ns_pid = process->ns_pid,
		.start_ticks = process->start_ticks,
		.start_ns = process->start_ns,
		.user_id = process->user_id,
	};
	uint32_t index;

	recorder_forget(writing);
	writing->snapshot = snapshot_new(time_ns);
	if (!writing->snapshot)
		return -ENOMEM;
	identity.comm = recorder_keep(writing->snapshot, process->comm);
	identity.user = recorder_keep(writing->snapshot, process->user);
	identity.container = recorder_keep(writing->snapshot, process->container);
	identity.source = recorder_keep(writing->snapshot, process->source);
	return snapshot_add_process(writing->snapshot, &identity, &index);
}

static int recorder_remember_device(struct recorder_writing *writing, uint32_t device,
				    uint64_t unique_id)
{
	struct snapshot_part *part = snapshot_part(writing->snapshot, 0, device);

	if (!part)
		return -ENOMEM;
	part->facts.unique_id = unique_id;
	return 0;
}

/* 0, or -EFBIG: the rows so far are as many as the scope allows. Before each row. */
static int recorder_check_room(const struct recorder_writing *writing)
{
	uint64_t most = writing->scope->bytes_max;

	return most && (uint64_t)ftello(writing->json->out) >= most ? -EFBIG : 0;
}

/* Ends the list that is open and begins another one. */
static void recorder_open_part(struct recorder_writing *writing, enum recorder_part part)
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

static void recorder_exit(struct emit *json, const struct store_ending *ending)
{
	if (!ending->exit_is_known) {
		emit_null(json, "exit");
		return;
	}
	emit_open_object(json, "exit");
	if (ending->exit_signal)
		emit_null(json, "code");
	else
		emit_u64(json, "code", (uint32_t)ending->exit_code & 0xff);
	if (ending->exit_signal)
		emit_u64(json, "signal", (uint32_t)ending->exit_signal & 0x7f);
	else
		emit_null(json, "signal");
	emit_close_object(json);
}

static void recorder_open_leak(struct recorder_writing *writing)
{
	const struct snapshot_process *process = &writing->snapshot->processes[0];
	const struct store_leak *leak = &writing->leak;
	struct emit *json = writing->json;

	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->pid);
	emit_u64(json, "ns_pid", process->ns_pid);
	emit_string(json, "comm", process->comm);
	emit_string(json, "user", process->user);
	emit_u64(json, "user_id", process->user_id);
	emit_string(json, "container", process->container);
	emit_string(json, "source", process->source);
	emit_u64(json, "start_ns", process->start_ns);
	emit_u64(json, "ended_ns", leak->ending.ended_ns);
	emit_string(json, "how", leak->ending.closed ? "closed" : "died");
	emit_bool(json, "exec", leak->ending.execed);
	recorder_exit(json, &leak->ending);
	emit_u64(json, "bytes", leak->bytes);
	emit_u64(json, "buffer_count", leak->buffers);
	if (leak->buffers == 0) {
		emit_bool(json, "buffers_known", false);
		writing->totals_only++;
	}
	writing->is_open = true;
}

static void recorder_close_leak(struct recorder_writing *writing)
{
	if (!writing->is_open)
		return;
	if (writing->part != RECORDER_BUFFERS) {
		recorder_open_part(writing, RECORDER_SITES);
		recorder_open_part(writing, RECORDER_BUFFERS);
	}
	recorder_open_part(writing, RECORDER_NOTHING);
	emit_close_object(writing->json);
	writing->is_open = false;
}

static int recorder_leak(void *context, const struct store_leak *leak)
{
	struct recorder_writing *writing = context;
	int r;

	recorder_close_leak(writing);
	r = recorder_remember(writing, &leak->process, leak->ending.ended_ns);
	if (r < 0)
		return r;
	writing->leak = *leak;
	/* With an address it is only told if a buffer of that address comes. */
	if (!writing->scope->has_address)
		recorder_open_leak(writing);
	return 0;
}

static void recorder_site(struct emit *json, const struct store_part *part, bool has_age)
{
	emit_open_object(json, NULL);
	emit_string(json, "type", types_name(part->type));
	emit_string(json, "name", part->name);
	emit_string(json, "phase", part->phase);
	document_stack(json, part->stack);
	emit_u64(json, "bytes", part->bytes);
	emit_u64(json, "buffers", part->buffers);
	if (has_age)
		emit_u64(json, "oldest_ns", part->oldest_ns);
	emit_close_object(json);
}

static int recorder_leak_site(void *context, const struct store_part *part)
{
	struct recorder_writing *writing = context;

	if (!writing->is_open)
		return 0;
	recorder_open_part(writing, RECORDER_SITES);
	recorder_site(writing->json, part, true);
	return 0;
}

/* Whether something at an address is what was asked for. */
static bool recorder_is_wanted(const struct recorder_scope *scope, uint64_t address,
			       uint32_t device, uint64_t unique_id, uint32_t type)
{
	if (!scope->has_address)
		return true;
	return address == scope->address &&
	       (!scope->filter || (filter_wants_device(scope->filter, device, unique_id) &&
				   filter_wants_type(scope->filter, type)));
}

static int recorder_leak_buffer(void *context, const struct snapshot_buffer *buffer,
				uint64_t device_uid)
{
	struct recorder_writing *writing = context;
	struct snapshot_buffer row = *buffer;
	int r;

	if (!recorder_is_wanted(writing->scope, buffer->address, buffer->device, device_uid,
				buffer->type))
		return 0;
	r = recorder_check_room(writing);
	if (r == 0)
		r = recorder_remember_device(writing, buffer->device, device_uid);
	if (r < 0)
		return r;
	if (!writing->is_open)
		recorder_open_leak(writing);
	if (writing->part != RECORDER_BUFFERS) {
		recorder_open_part(writing, RECORDER_SITES);
		recorder_open_part(writing, RECORDER_BUFFERS);
	}
	row.process = 0;
	document_buffer(writing->json, writing->snapshot, &row);
	return 0;
}

static int recorder_filter(const struct query_past *query, const struct recorder_scope *scope,
			   struct store_filter *ret_filter)
{
	*ret_filter = (struct store_filter){
		.kind = query->kind,
		.has_uid = scope->has_uid,
		.uid = scope->uid,
		.pid = query->pid,
		.since_ns = query->since_ns,
		.limit = query->limit ? query->limit : RECORDER_PAGE_DEFAULT,
	};
	return recorder_cursor_read(query->cursor, &ret_filter->after);
}

/* The rows of one page. */
static int recorder_leak_rows(struct store_reader *reader, const struct store_filter *filter,
			      struct recorder_writing *writing, struct store_cursor *ret_next)
{
	const struct store_leak_rows rows = {
		.context = writing,
		.leak = recorder_leak,
		/* A leak is only begun by its first buffer of the address, after the sites. */
		.part = writing->scope->has_address ? NULL : recorder_leak_site,
		.buffer = recorder_leak_buffer,
	};
	int r = store_query_leaks(reader, filter, &rows, ret_next);

	recorder_close_leak(writing);
	return r;
}

int recorder_documents_leak_rows(struct store_reader *reader, const struct store_filter *filter,
				 const struct recorder_scope *scope, struct emit *json,
				 struct store_cursor *ret_next)
{
	CLEANUP(recorder_forget) struct recorder_writing writing = {.json = json, .scope = scope};

	return recorder_leak_rows(reader, filter, &writing, ret_next);
}

int recorder_documents_leaks(struct store_reader *reader, const struct query_past *query,
			     const struct recorder_scope *scope, struct emit *json)
{
	CLEANUP(recorder_forget) struct recorder_writing writing = {.json = json, .scope = scope};
	struct store_filter filter;
	struct store_cursor next;
	int r = recorder_filter(query, scope, &filter);

	if (r < 0)
		return r;
	document_open(json, "ttmem.leaks/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(json, "processes");
	r = recorder_leak_rows(reader, &filter, &writing, &next);
	if (r < 0)
		return r;
	emit_close_array(json);
	recorder_cursor_end(json, &next, writing.totals_only);
	return 0;
}

static void recorder_close_incident(struct recorder_writing *writing)
{
	if (!writing->is_open)
		return;
	if ((writing->is_failure || writing->is_overlap) && writing->part == RECORDER_NOTHING)
		recorder_open_part(writing, RECORDER_HOLDERS);
	if (writing->is_failure && writing->part == RECORDER_HOLDERS)
		recorder_open_part(writing, RECORDER_SITES);
	recorder_open_part(writing, RECORDER_NOTHING);
	emit_close_object(writing->json);
	writing->is_open = false;
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
	     !recorder_is_wanted(writing->scope, row.address, row.device, incident->device_uid,
				 row.type)))
		return 0;
	r = recorder_check_room(writing);
	if (r == 0)
		r = recorder_remember(writing, &incident->process, incident->site.last_ns);
	if (r == 0)
		r = recorder_remember_device(writing, row.device, incident->device_uid);
	if (r < 0)
		return r;
	row.process = 0;
	row.time_ns = incident->site.first_ns;
	row.last_ns = incident->site.last_ns;
	row.count = is_leak ? incident->site.buffers : incident->site.count;
	if (is_leak) {
		/* All that ever leaked there, which has no one address. */
		row.size = incident->site.bytes;
		row.has_address = false;
	}
	emit_open_object(writing->json, NULL);
	document_incident_fields(writing->json, writing->snapshot, &row);
	writing->is_open = true;
	writing->is_failure = strcmp(incident->site.kind, "alloc_failed") == 0;
	writing->is_overlap = strcmp(incident->site.kind, "overlap") == 0;
	return 0;
}

/* Totals of a process, which are everybody's. */
static int recorder_incident_holder(void *context, const struct store_holder *holder)
{
	struct recorder_writing *writing = context;
	struct emit *json = writing->json;

	if (!writing->is_open || (!writing->is_failure && !writing->is_overlap))
		return 0;
	recorder_open_part(writing, RECORDER_HOLDERS);
	emit_open_object(json, NULL);
	emit_u64(json, "pid", holder->process.pid);
	emit_string(json, "comm", holder->process.comm);
	emit_u64(json, "user_id", holder->process.user_id);
	emit_string(json, "type", types_name(holder->type));
	emit_u64(json, "used", holder->used);
	emit_u64(json, "buffers", holder->buffers);
	emit_close_object(json);
	return 0;
}

static int recorder_incident_site(void *context, const struct store_part *part)
{
	struct recorder_writing *writing = context;

	/* They are over all processes, and names are details: not for who may see only some. */
	if (!writing->is_open || !writing->is_failure || writing->scope->has_uid)
		return 0;
	if (writing->part == RECORDER_NOTHING)
		recorder_open_part(writing, RECORDER_HOLDERS);
	recorder_open_part(writing, RECORDER_SITES);
	recorder_site(writing->json, part, false);
	return 0;
}

int recorder_documents_incident_rows(struct store_reader *reader, const struct store_filter *filter,
				     const struct recorder_scope *scope, struct emit *json,
				     struct store_cursor *ret_next)
{
	CLEANUP(recorder_forget) struct recorder_writing writing = {.json = json, .scope = scope};
	const struct store_incident_rows rows = {
		.context = &writing,
		.incident = recorder_incident,
		.holder = recorder_incident_holder,
		.part = recorder_incident_site,
	};
	int r = store_query_incidents(reader, filter, &rows, ret_next);

	recorder_close_incident(&writing);
	return r;
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

int recorder_documents_incidents(struct store_reader *reader, const struct query_past *query,
				 const struct recorder_scope *scope, struct emit *json)
{
	struct store_filter filter;
	struct store_cursor next;
	int r = recorder_filter(query, scope, &filter);

	if (r == 0)
		r = recorder_check_kind(reader, query->kind);
	if (r < 0)
		return r;
	document_open(json, "ttmem.incidents/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(json, "incidents");
	r = recorder_documents_incident_rows(reader, &filter, scope, json, &next);
	if (r < 0)
		return r;
	emit_close_array(json);
	recorder_cursor_end(json, &next, 0);
	return 0;
}
