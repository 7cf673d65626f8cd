/* SPDX-License-Identifier: Apache-2.0 */

/* The history of an address, from the daemon. */

#include "cli/history-daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/buffers.h"
#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/history.h"
#include "answers/incidents.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "model/query.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

#define HISTORY_DAEMON_INDENT "          "

void history_daemon_deinit(struct history_daemon *daemon)
{
	pool_deinit(&daemon->rows);
	document_unload(&daemon->document);
}

/* The daemon did not answer. Where there is none, nothing is missing. */
static void history_daemon_miss(const struct daemon_client *remote, int noted,
				struct snapshot *snapshot)
{
	int outcome = daemon_client_outcome(remote);

	if (outcome == DAEMON_CLIENT_NONE)
		return;
	snapshot->exact = false;
	if (outcome != noted || outcome == DAEMON_CLIENT_REFUSED)
		snapshot_note(snapshot, "the past of this address is missing: %s",
			      daemon_client_reason(remote));
}

/* 0, a daemon_client_outcome, or a negative errno. */
static int history_daemon_get(struct daemon_client *remote, const struct query *query,
			      struct snapshot *snapshot, struct history_daemon *daemon)
{
	struct document_about about;
	struct history_answer answer;
	int r = daemon_pages_ask(remote, ANSWERS_HISTORY, query, &daemon->document);

	if (r != 0)
		return r;
	r = document_take(daemon->document, &history_document, &about, &answer, &daemon->rows);
	if (r < 0)
		return r == -EINVAL ? daemon_client_reject(remote) : r;
	daemon->past = answer.past;
	/* What the daemon says of its rows holds for ours. */
	snapshot->exact = snapshot->exact && !about.is_partial;
	for (size_t i = 0; i < about.note_count; i++) {
		if (about.notes[i])
			snapshot_note(snapshot, "%s", about.notes[i]);
	}
	return 0;
}

int history_daemon_ask(struct daemon_client *remote, const struct query *query,
		       struct snapshot *snapshot, struct history_daemon *ret_daemon)
{
	int noted = daemon_client_outcome(remote); /* by daemon_client_note() */
	struct query past = *query;
	int r;

	past.given |= QUERY_ONLY;
	past.only_past = true;
	r = history_daemon_get(remote, &past, snapshot, ret_daemon);
	if (r > 0)
		history_daemon_miss(remote, noted, snapshot);
	return r < 0 ? r : 0;
}

static bool history_daemon_lives(const struct snapshot *snapshot, uint32_t pid)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == pid && snapshot->processes[i].alive)
			return true;
	}
	return false;
}

static void history_daemon_who(bool is_first, uint32_t pid, const char *comm, uint64_t ago)
{
	char number[TEXT_NUMBER_SIZE];

	if (is_first)
		puts("Remembered of ended processes:");
	printf("  pid %" PRIu32 " (", pid);
	text_put(stdout, comm ? comm : "?");
	printf("), %s ago: ", text_duration(ago, number));
}

static void history_daemon_what(uint64_t size, uint32_t type, uint32_t device)
{
	char number[TEXT_NUMBER_SIZE];

	printf("%s of %s on device %" PRIu32, text_size(size, number),
	       types_name(type) ? types_name(type) : "?", device);
}

/* In the words of "ttmem leaks". */
static void history_daemon_left(const struct buffers_row *row, uint64_t ended_ns, bool stacks)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	const struct site site = call_stack_site(row->frames.site);
	char number[TEXT_NUMBER_SIZE];
	const char *place;

	printf("left ");
	history_daemon_what(row->size, row->type, row->device);
	if (row->name) {
		printf(", \"");
		text_put(stdout, row->name);
		putchar('"');
	}
	if (row->phase) {
		printf(", in ");
		text_put(stdout, row->phase);
	}
	if (row->born_ns && row->born_ns < ended_ns)
		printf(", %s old", text_duration(ended_ns - row->born_ns, number));
	site_rows_add(&rows, &site);
	site_rows_finish(&rows);
	place = site_rows_text(&rows, 0);
	if (*place) {
		fputs(", at ", stdout);
		text_put(stdout, place);
	}
	putchar('\n');
	if (stacks)
		daemon_pages_print_stack(&row->frames, HISTORY_DAEMON_INDENT);
}

/* What to type for every event that was recorded. */
static void history_daemon_recording(const char *path, uint64_t address)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
	const char *quote = path && path[strspn(path, plain)] ? "'" : "";

	if (!path)
		return;
	printf("  its last minute: ttmem history 0x%" PRIx64 " --from %s", address, quote);
	text_put(stdout, path);
	puts(quote);
}

bool history_daemon_print(const struct history_past *past, const struct snapshot *snapshot,
			  uint64_t address, bool stacks)
{
	uint64_t now = snapshot->time_ns;
	bool is_first = true;

	for (size_t i = 0; i < past->leak_count; i++) {
		const struct leaks_row *leak = &past->leaks[i];
		uint64_t ago = now - bits_min(now, leak->ended.ended_ns);

		for (size_t k = 0; k < leak->buffer_count; k++, is_first = false) {
			const struct buffers_row *row = &leak->buffers[k];

			history_daemon_who(is_first, leak->ended.pid, leak->ended.comm, ago);
			history_daemon_left(row, leak->ended.ended_ns, stacks);
		}
		if (leak->buffer_count)
			history_daemon_recording(leak->recording, address);
	}
	for (size_t i = 0; i < past->incident_count; i++) {
		const struct incident_row *row = &past->incidents[i];

		if (history_daemon_lives(snapshot, row->pid))
			continue;
		history_daemon_who(is_first, row->pid, row->comm,
				   now - bits_min(now, row->last_ns));
		text_put(stdout, row->kind ? row->kind : "incident");
		printf(", ");
		history_daemon_what(row->size, row->type, row->device);
		putchar('\n');
		history_daemon_recording(row->recording, address);
		is_first = false;
	}
	return !is_first;
}
