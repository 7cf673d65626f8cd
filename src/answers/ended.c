/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.ended/1 and ttmem.leaks/1. */

#include "answers/ended.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "answers/buffers.h"
#include "answers/document.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/ending.h"
#include "model/snapshot.h"

#define ROW struct ended_exit

const struct field ended_exit_fields[] = {
	FIELD_IF(has_code, "code", SHORT, code, .most = 255),
	FIELD_OR_NULL("signal", SHORT, signal, .least = 1, .most = 127),
	FIELD_OR_NULL("name", TEXT, name, .is_later = true,
		      .says = "of the signal, as SIGKILL; null: it has none"),
	FIELD_END,
};

#undef ROW
#define ROW struct ended_row

static const char *ended_how(uint32_t how)
{
	return how == 0 ? "closed" : how == 1 ? "died" : NULL;
}

#define ENDED_HOW "closed: the library said goodbye; died: it could not"
#define ENDED_EXEC "it has become another program by exec, and lives or has lived on as that"

static const struct field ended_facts[] = {
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("ns_pid", SHORT, ns_pid, .says = "as the process saw itself"),
	FIELD("comm", TEXT, comm),
	FIELD_OR_NULL("user", TEXT, user),
	FIELD("user_id", SHORT, user_id),
	FIELD_OR_NULL("container", TEXT, container),
	FIELD_OR_NULL("source", TEXT, source, .names = document_source),
	FIELD("start_ns", TIME, start_ns),
	FIELD("ended_ns", TIME, ended_ns),
	FIELD("how", TEXT, how, .names = ended_how, .says = ENDED_HOW),
	FIELD("exec", BOOL, execed, .says = ENDED_EXEC),
	FIELD_POINTED("exit", exit, ended_exit_fields, .says = "null: not known"),
	FIELD_END,
};

static const struct field ended_sums[] = {
	FIELD("bytes", BYTES, bytes),
	FIELD("buffer_count", NUMBER, buffers, .says = "all that it left"),
	FIELD_END,
};

const struct field ended_fields[] = {
	FIELD_MORE(ended_facts),
	FIELD_MORE(ended_sums),
	FIELD_END,
};

#undef ROW
#define ROW struct leaks_row
#define LEAKS_RECORDING                                                                     \
	"file with the last minute of the process, for --from; null: the daemon has none; " \
	"left out where no daemon answers"
#define LEAKS_LISTED                                                                             \
	"buffers that the report has kept; fewer than buffer_count: the document is not exact, " \
	"and a note says so"
#define LEAKS_OFFSET \
	"only over HTTP: earlier pages had so many of the buffers, and the sites; else left out"
#define LEAKS_UNKNOWN                                                                             \
	"false: only tt-metal's region told of the process, so bytes is all that is known; else " \
	"left out"
#define LEAKS_BUFFERS                                                                        \
	"largest first; ages are those at the end of the process. A page over HTTP may end " \
	"within the list, and the next one goes on with the same process"

static const void *leaks_buffer(const void *row, size_t *at, struct fields_room *room)
{
	const struct leaks_row *leak = row;
	struct buffers_row *made = FIELDS_IN(room, struct buffers_row);

	if (!leak->snapshot)
		return *at < leak->buffer_count ? &leak->buffers[(*at)++] : NULL;
	while (*at < leak->buffers_end) {
		const struct snapshot_buffer *buffer = &leak->snapshot->buffers[(*at)++];

		if (buffer->process != leak->process)
			continue;
		*made = buffers_row_of(leak->snapshot, buffer);
		return made;
	}
	return NULL;
}

const struct field leaks_buffers[] = {
	FIELD_MADE("buffers", leaks_buffer, buffers_fields),
	FIELD_END,
};

const struct field leaks_fields[] = {
	FIELD_MORE_OF(ended, ended_facts),
	FIELD("recording", TEXT, recording, .absent = FIELD_EITHER,
	      .known = FIELD_KNOWN(has_recording), .says = LEAKS_RECORDING),
	FIELD_MORE_OF(ended, ended_sums),
	FIELD("listed", NUMBER, listed, .says = LEAKS_LISTED),
	FIELD_OR_NOTHING("offset", NUMBER, offset, .says = LEAKS_OFFSET),
	FIELD("buffers_known", NOT, is_totals_only, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(is_totals_only), .says = LEAKS_UNKNOWN),
	FIELD_ARRAY_AT("sites", ROWS, sites, site_count, .fields = site_leak_fields,
		       .says = "by call site, largest first"),
	FIELD_ARRAY_AT("buffers", EACH, buffers, buffer_count, .each = leaks_buffer,
		       .fields = buffers_fields, .says = LEAKS_BUFFERS),
	FIELD_END,
};

/* Rows come one after the other out of books or the database: see recorder_writing. */
static const struct field ended_members[] = {
	FIELD_LISTED("processes", ended_fields, .says = "newest first"),
	DOCUMENT_HIDDEN,
	FIELD_END,
};

static const struct field leaks_members[] = {
	FIELD_LISTED("processes", leaks_fields, .says = "newest first"),
	DOCUMENT_HIDDEN,
	FIELD_END,
};

const struct document ended_document = {
	.schema = "ttmem.ended/1",
	.title = "/api/v1/ended: processes that have ended, whatever they left",
	.members = ended_members,
	.has = DOCUMENT_LIST,
};

const struct document leaks_document = {
	.schema = "ttmem.leaks/1",
	.title = "ttmem leaks --json: what ended processes left",
	.members = leaks_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};

const struct ended_exit *ended_exit_of(const struct ending *ending, struct ended_room *room)
{
	int number = ending_signal(ending);
	const char *abbreviation = number ? sigabbrev_np(number) : NULL;

	if (!ending->has_status)
		return NULL;
	(void)snprintf(room->signal, sizeof(room->signal), "SIG%s",
		       abbreviation ? abbreviation : "");
	room->exit = (struct ended_exit){
		.signal = (uint32_t)number,
		.name = abbreviation ? room->signal : NULL,
		.has_code = !number,
		.code = number ? 0 : (uint32_t)WEXITSTATUS(ending->status),
	};
	return &room->exit;
}

struct ended_row ended_row_of(const struct snapshot_process *process, const struct ending *ending,
			      struct ended_room *room)
{
	return (struct ended_row){
		.pid = process->id.pid,
		.ns_pid = process->ns_pid,
		.comm = process->comm,
		.user = process->user,
		.user_id = process->user_id,
		.container = process->container,
		.source = process->source,
		.start_ns = process->start_ns,
		.ended_ns = ending->ended_ns,
		.how = ended_how(!ending->closed),
		.execed = ending->execed,
		.exit = ended_exit_of(ending, room),
	};
}

const char *ended_words(const struct ended_row *row, bool is_short, char ret_text[ENDED_WORDS])
{
	const struct ended_exit *exit = row->exit;
	const char *name = exit ? exit->name : NULL;

	if (exit && exit->signal && name && is_short)
		snprintf(ret_text, ENDED_WORDS, "%s", name);
	else if (exit && exit->signal)
		snprintf(ret_text, ENDED_WORDS, "%ssignal %" PRIu32 "%s%s%s",
			 is_short ? "" : "killed by ", exit->signal, name ? " (" : "",
			 name ? name : "", name ? ")" : "");
	else if (exit && exit->has_code)
		snprintf(ret_text, ENDED_WORDS, "exit %s%" PRIu32, is_short ? "" : "code ",
			 exit->code);
	else if (row->execed)
		snprintf(ret_text, ENDED_WORDS, is_short ? "exec" : "became another program");
	else if (row->how && strcmp(row->how, "closed") == 0)
		snprintf(ret_text, ENDED_WORDS, is_short ? "in order" : "ended in order");
	else
		snprintf(ret_text, ENDED_WORDS, "died");
	return ret_text;
}

void leaks_row_count(struct leaks_row *row, const struct snapshot *snapshot, uint32_t process,
		     uint64_t most)
{
	row->snapshot = snapshot;
	row->process = process;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process != process)
			continue;
		row->ended.bytes += snapshot->buffers[i].size;
		row->ended.buffers++;
		if (row->listed >= most)
			continue;
		row->listed++;
		row->buffers_end = i + 1;
	}
}
