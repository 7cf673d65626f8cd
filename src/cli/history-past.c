/* SPDX-License-Identifier: Apache-2.0 */

/* The history of an address, from the daemon. */

#include "cli/history-past.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/answers.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

void history_past_deinit(struct history_past *past)
{
	free(past->leaks);
	free(past->incidents);
}

/* A member of "past" as text. NULL if it is not a list, or out of memory. */
static char *history_past_list(const json_t *past, const char *key)
{
	const json_t *list = json_object_get(past, key);

	return json_is_array(list) ? json_dumps(list, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
}

/* The daemon did not answer. Where there is none, nothing is missing. */
static void history_past_miss(const struct daemon_client *remote, int noted,
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

/* What the daemon says of its rows holds for ours. */
static void history_past_heed(const json_t *document, struct snapshot *snapshot)
{
	json_t *notes = json_object_get(document, "notes"), *note;
	size_t i;

	if (json_is_false(json_object_get(document, "exact")))
		snapshot->exact = false;
	json_array_foreach(notes, i, note)
	{
		if (json_is_string(note))
			snapshot_note(snapshot, "%s", json_string_value(note));
	}
}

/* 0, a daemon_client_outcome, or a negative errno. */
static int history_past_get(struct daemon_client *remote, const struct query *query,
			    struct snapshot *snapshot, struct history_past *ret_past)
{
	CLEANUP(history_past_deinit) struct history_past past = {.leaks = NULL};
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	CLEANUP_FREE char *text = NULL;
	const json_t *rows;
	size_t length;
	int r = daemon_client_get(remote, answers[ANSWERS_HISTORY].path, query, &text, &length);

	if (r != 0)
		return r;
	document = daemon_pages_load(text, length);
	rows = json_object_get(document, "past");
	if (!json_is_null(rows)) {
		past.leaks = history_past_list(rows, "leaks");
		past.incidents = history_past_list(rows, "incidents");
		if (!past.leaks || !past.incidents)
			return daemon_client_reject(remote);
	}
	history_past_heed(document, snapshot);
	ret_past->leaks = cleanup_steal(past.leaks);
	ret_past->incidents = cleanup_steal(past.incidents);
	return 0;
}

int history_past_ask(struct daemon_client *remote, const struct query *query,
		     struct snapshot *snapshot, struct history_past *ret_past)
{
	int noted = daemon_client_outcome(remote); /* by daemon_client_note() */
	struct query past = *query;
	int r;

	past.given |= QUERY_ONLY;
	past.only_past = true;
	r = history_past_get(remote, &past, snapshot, ret_past);
	if (r > 0)
		history_past_miss(remote, noted, snapshot);
	return r < 0 ? r : 0;
}

static bool history_past_lives(const struct snapshot *snapshot, uint64_t pid)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == pid && snapshot->processes[i].alive)
			return true;
	}
	return false;
}

static void history_past_who(const json_t *row, const char *time, uint64_t now)
{
	const char *comm = daemon_pages_text(row, "comm");
	uint64_t then = daemon_pages_number(row, time);
	char number[TEXT_NUMBER_SIZE];

	printf("  pid %" PRIu64 " (", daemon_pages_number(row, "pid"));
	text_put(stdout, comm ? comm : "?");
	printf("), %s ago: ", text_duration(now > then ? now - then : 0, number));
}

static void history_past_what(const json_t *row)
{
	const char *type = daemon_pages_text(row, "type"), *name = daemon_pages_text(row, "name");
	char number[TEXT_NUMBER_SIZE];

	printf("%s of %s on device %" PRIu64, text_size(daemon_pages_number(row, "size"), number),
	       type ? type : "?", daemon_pages_number(row, "device"));
	if (name) {
		printf(", \"");
		text_put(stdout, name);
		putchar('"');
	}
	putchar('\n');
}

static size_t history_past_print_leaks(const json_t *rows, uint64_t now)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const json_t *buffers = json_object_get(row, "buffers");

		for (size_t k = 0; k < json_array_size(buffers); k++) {
			if (count++ == 0)
				puts("Remembered of ended processes:");
			history_past_who(row, "ended_ns", now);
			printf("left ");
			history_past_what(json_array_get(buffers, k));
		}
	}
	return count;
}

static size_t history_past_print_incidents(const json_t *rows, const struct snapshot *snapshot,
					   size_t count)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *kind = daemon_pages_text(row, "kind");

		if (history_past_lives(snapshot, daemon_pages_number(row, "pid")))
			continue;
		if (count++ == 0)
			puts("Remembered of ended processes:");
		history_past_who(row, "last_ns", snapshot->time_ns);
		text_put(stdout, kind ? kind : "incident");
		printf(", ");
		history_past_what(row);
	}
	return count;
}

bool history_past_print(const struct history_past *past, const struct snapshot *snapshot)
{
	json_t *leaks = daemon_pages_load(past->leaks, strlen(past->leaks));
	json_t *incidents = daemon_pages_load(past->incidents, strlen(past->incidents));
	size_t count = history_past_print_leaks(leaks, snapshot->time_ns);

	count = history_past_print_incidents(incidents, snapshot, count);
	json_decref(leaks);
	json_decref(incidents);
	return count > 0;
}
