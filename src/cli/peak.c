/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem peak: what was live at the highest moment, by call site. Books are read here; what the daemon has
 * kept is added: of processes that have ended, and of peaks that their books have forgotten.
 */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/peak-text.h"
#include "cli/common/session.h"
#include "model/query.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

#define PEAK_ROWS 20u /* of each peak: as many as a person reads */

struct peak {
	struct snapshot_request request;
	struct query query;
	struct options_from from;
	bool json;
};

/* The same book at the same peak; times are converted anew by every reading. */
static bool peak_is_same(const json_t *a, const json_t *b)
{
	uint64_t then = daemon_pages_number(a, "time_ns"), now = daemon_pages_number(b, "time_ns");
	const char *x = daemon_pages_text(a, "type"), *y = daemon_pages_text(b, "type");

	return daemon_pages_number(a, "pid") == daemon_pages_number(b, "pid") &&
	       daemon_pages_number(a, "device") == daemon_pages_number(b, "device") &&
	       daemon_pages_number(a, "bytes") == daemon_pages_number(b, "bytes") && x && y &&
	       strcmp(x, y) == 0 && bits_max(then, now) - bits_min(then, now) < NS_PER_S;
}

/* Without memory for it, it stays as it is. */
static void peak_replace(json_t *peaks, size_t index, json_t *kept)
{
	const json_t *own = json_array_get(peaks, index);
	json_t *bound = json_object_get(own, "bound"), *per_bank = json_object_get(own, "per_bank");

	/* Only who has read the book knows what went unrecorded. */
	(void)json_object_set(kept, "bound", bound);
	if (daemon_pages_number(per_bank, "bytes") >=
	    daemon_pages_number(json_object_get(kept, "per_bank"), "bytes"))
		(void)json_object_set(kept, "per_bank", per_bank);
	if (!json_is_string(bound) || strcmp(json_string_value(bound), "exact") != 0)
		(void)json_object_set_new(kept, "exact", json_false());
	(void)json_array_set(peaks, index, kept);
}

/* Of a living process only what its book has forgotten is of interest. */
static void peak_add(json_t *peaks, json_t *kept)
{
	bool ended = json_is_true(json_object_get(kept, "ended"));

	for (size_t i = 0; i < json_array_size(peaks); i++) {
		json_t *own = json_array_get(peaks, i);

		if (!peak_is_same(own, kept))
			continue;
		if (daemon_pages_number(own, "known_bytes") <
		    daemon_pages_number(kept, "known_bytes"))
			peak_replace(peaks, i, kept);
		return;
	}
	if (ended)
		(void)json_array_append(peaks, kept); /* without memory it is missing */
}

/* Whether a row of the daemon is asked for. */
static bool peak_wants(const struct peak *peak, const json_t *row)
{
	const struct filter *filter = &peak->request.filter;
	const char *uid = daemon_pages_text(row, "device_uid");
	const char *type = daemon_pages_text(row, "type");
	uint64_t id = 0;

	if (json_is_true(json_object_get(row, "ended")) && !peak->request.ended && !filter->pid)
		return false;
	/* Without a unique id it stays 0, which no filter has. */
	if (uid)
		(void)text_parse_u64(uid, &id);
	return filter_wants_pid(filter, (uint32_t)daemon_pages_number(row, "pid")) &&
	       (!filter->has_type || (type && strcmp(type, types_name(filter->type)) == 0)) &&
	       filter_wants_device(filter, (uint32_t)daemon_pages_number(row, "device"), id);
}

/* The daemon's rows, if there is one; what it does not know is no reason for a note. */
static void peak_ask(const struct peak *peak, struct daemon_client *remote, json_t *peaks)
{
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	struct query query = peak->query;
	CLEANUP_FREE char *text = NULL;
	size_t length, i;
	json_t *row;

	if (!remote || daemon_client_outcome(remote) != 0)
		return;
	query.given &= QUERY_BY | QUERY_PID; /* which of its rows are wanted is seen here */
	if (daemon_client_get(remote, answers[ANSWERS_PEAK].path, &query, &text, &length) != 0)
		return;
	document = daemon_pages_load(text, length);
	json_array_foreach(json_object_get(document, "peaks"), i, row)
	{
		if (peak_wants(peak, row))
			peak_add(peaks, row);
	}
}

static int peak_parse(struct peak *peak, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process"},
		{'d', "device", "DEV|UID", "only on this device"},
		{0, "type", "TYPE", TYPES_ALL},
		/* Which thread allocated what has been freed since is not known. */
		{0, "by", "name|phase|site", "add up by this (site)"},
		{0, "ended", NULL, "also of ended processes, as ttmemd remembers them",
		 &peak->request.ended, NULL},
		OPTIONS_FROM(&peak->from),
		{0, "json", NULL, "as JSON", &peak->json, NULL},
	};
	const struct options options = {
		.command = "peak",
		.shows_sizes = true,
		.summary = "What was live at the highest moment of each process, device and type.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &peak->query,
		.answer = &answers[ANSWERS_PEAK],
	};

	return options_parse_only(&options, argc, argv);
}

/* The document of what was read here; NULL: no memory. */
static json_t *peak_read_own(const struct peak *peak, const struct snapshot *snapshot)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);
	int r;

	if (!out)
		return NULL;
	r = peak_put(&json, snapshot, peak->query.by);
	if (fclose(out) != 0 || r < 0)
		return NULL;
	return daemon_pages_load(text, length);
}

/* Texts of other processes must not reach a terminal as they are; one control is left as it is by jansson. */
static void peak_dump(const json_t *document)
{
	CLEANUP_FREE char *text = must_have(json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII));

	for (const char *c = text; *c && !output_is_broken(); c++) {
		if (*c == 0x7f)
			(void)fputs("\\u007f", stdout);
		else
			(void)putchar(*c);
	}
	(void)putchar('\n');
}

static void peak_write(const struct peak *peak, const struct session *session,
		       const struct snapshot *snapshot, const json_t *document)
{
	const struct peak_text text = {
		.out = stdout, .indent = "", .rows = PEAK_ROWS, .is_spaced = true};

	if (peak->json) {
		peak_dump(document);
		return;
	}
	output_page();
	session_print_moment(session);
	peak_text_put(&text, json_object_get(document, "peaks"));
	session_print_tip(stdout);
	session_print_notes(snapshot);
}

static int peak_show(const struct peak *peak, struct session *session, struct asked_for *asked)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	json_t *peaks;
	int r = session_take(session, &peak->request, &snapshot);

	if (r < 0)
		return r;
	document = must_have(peak_read_own(peak, snapshot));
	peaks = json_object_get(document, "peaks");
	peak_ask(peak, session_remote(session), peaks);
	peak_text_sort(peaks);
	if (json_array_size(peaks) == 0) {
		asked_for_check(asked, session, snapshot);
		if (!asked->is_missing && !peak->json)
			asked_for_tell_none(asked, "peak");
	}
	peak_write(peak, session, snapshot, document);
	return 0;
}

static int peak_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct peak peak = {.request = {.buffers = true, .at_peak = true},
			    .query = {.given = QUERY_BY, .by = GROUP_SITE}};
	struct asked_for asked = {.command = "peak", .filter = &peak.request.filter, .rows = true};
	int r = peak_parse(&peak, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	asked.is_json = peak.json;
	peak.request.filter = peak.query.filter;
	r = session_start(&session, "peak", &peak.from, &peak.request.filter);
	if (r != 0)
		return r;
	if (peak.query.by == GROUP_SITE)
		peak.request.namer = session_namer(session);
	peak.request.ended = peak.request.ended || session_recording(session);
	r = peak_show(&peak, session, &asked);
	if (r < 0)
		return output_fail("peak", "cannot look at processes", r);
	return asked_for_exit(&asked, output_finish());
}

const struct command peak_command = {
	.name = "peak",
	.summary = "what was live at the highest moment",
	.run = peak_run,
};
