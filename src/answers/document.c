/* SPDX-License-Identifier: Apache-2.0 */

/* Parts that all documents share. */

#include "answers/document.h"

#include <string.h>
#include <sys/wait.h>

#include "base/emit.h"
#include "model/snapshot.h"
#include "model/types.h"

void document_open(struct emit *json, const char *schema, uint64_t time_ns)
{
	emit_open_object(json, NULL);
	emit_string(json, "schema", schema);
	emit_u64(json, "time_ns", time_ns);
}

static void document_time(struct emit *json, const char *key, uint64_t time_ns)
{
	if (time_ns)
		emit_u64(json, key, time_ns);
	else
		emit_null(json, key);
}

void document_reach(struct emit *json, const struct snapshot_reach *reach)
{
	document_time(json, "exact_from_ns", reach->exact_from_ns);
	document_time(json, "sums_from_ns", reach->sums_from_ns);
}

void document_recording(struct emit *json, const struct snapshot_recording *recording)
{
	if (!recording->file) {
		emit_null(json, "recording");
		return;
	}
	emit_open_object(json, "recording");
	emit_string(json, "file", recording->file);
	emit_u64(json, "start_ns", recording->start_ns);
	emit_u64(json, "end_ns", recording->end_ns);
	emit_u64(json, "events", recording->events);
	emit_u64(json, "missed", recording->missed);
	emit_close_object(json);
}

void document_open_at(struct emit *json, const char *schema, const struct snapshot *snapshot)
{
	document_open(json, schema, snapshot->time_ns);
	if (snapshot->recording.file)
		document_recording(json, &snapshot->recording);
}

static void document_moment(struct emit *json, const struct snapshot_moment *moment)
{
	if (moment->kind == SNAPSHOT_NOW) {
		emit_null(json, "moment");
		return;
	}
	emit_open_object(json, "moment");
	emit_u64(json, "asked_ns", moment->asked_ns);
	emit_string(json, "kind", moment->kind == SNAPSHOT_MOMENT_EXACT ? "exact" : "sums");
	document_reach(json, &moment->reach);
	emit_close_object(json);
}

void document_open_moment(struct emit *json, const char *schema, const struct snapshot *snapshot)
{
	document_open_at(json, schema, snapshot);
	document_moment(json, &snapshot->moment);
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

void document_close(struct emit *json, const struct snapshot *snapshot)
{
	char more[64];

	emit_open_array(json, "notes");
	for (size_t i = 0; i < snapshot->note_count; i++)
		emit_string(json, NULL, snapshot->notes[i]);
	if (snapshot->notes_lost) {
		snprintf(more, sizeof(more), "and %zu more notes", snapshot->notes_lost);
		emit_string(json, NULL, more);
	}
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}

void document_close_bare(struct emit *json)
{
	emit_open_array(json, "notes");
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}

void document_exit(struct emit *json, const struct ending *ending)
{
	int number = ending_signal(ending);
	const char *abbreviation;
	char name[16];

	if (!ending->has_status) {
		emit_null(json, "exit");
		return;
	}
	emit_open_object(json, "exit");
	if (number) {
		emit_null(json, "code");
		emit_u64(json, "signal", (uint64_t)number);
		abbreviation = sigabbrev_np(number);
		(void)snprintf(name, sizeof(name), "SIG%s", abbreviation ? abbreviation : "");
		emit_string(json, "name", abbreviation ? name : NULL);
	} else {
		emit_u64(json, "code", (uint64_t)WEXITSTATUS(ending->status));
		emit_null(json, "signal");
		emit_null(json, "name");
	}
	emit_close_object(json);
}

void document_ended(struct emit *json, const struct snapshot_process *process,
		    const struct ending *ending)
{
	emit_u64(json, "pid", process->id.pid);
	emit_u64(json, "ns_pid", process->ns_pid);
	emit_string(json, "comm", process->comm);
	emit_string(json, "user", process->user);
	emit_u64(json, "user_id", process->user_id);
	emit_string(json, "container", process->container);
	emit_string(json, "source", process->source);
	emit_u64(json, "start_ns", process->start_ns);
	emit_u64(json, "ended_ns", ending->ended_ns);
	emit_string(json, "how", ending->closed ? "closed" : "died");
	emit_bool(json, "exec", ending->execed);
	document_exit(json, ending);
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
	default:
		return "exact";
	}
}
