/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem peak: what was live at the highest moment, by call site. Books are read here; what the daemon has
 * kept is added: of processes that have ended, and of peaks that their books have forgotten.
 */

#include <errno.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/pool.h"
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
static bool peak_is_same(const struct peak_row *a, const struct peak_row *b)
{
	return a->pid == b->pid && a->device == b->device && a->bytes == b->bytes &&
	       a->type == b->type &&
	       bits_max(a->time_ns, b->time_ns) - bits_min(a->time_ns, b->time_ns) < NS_PER_S;
}

/* Of a living process only what its book has forgotten is of interest. */
static void peak_add(struct peak_list *peaks, const struct peak_row *kept)
{
	for (size_t i = 0; i < peaks->count; i++) {
		struct peak_row *row = &peaks->rows[i], own;

		if (!peak_is_same(row, kept))
			continue;
		if (row->known >= kept->known)
			return;
		own = *row;
		group_list_deinit(&row->groups.list);
		*row = *kept;
		/* Only who has read the book knows what went unrecorded. */
		row->bound = own.bound;
		row->is_exact &= own.bound == SNAPSHOT_EXACT;
		if (own.per_bank.bytes >= kept->per_bank.bytes) {
			row->has_per_bank = own.has_per_bank;
			row->per_bank = own.per_bank;
		}
		return;
	}
	if (kept->is_ended)
		peaks->rows[peaks->count++] = *kept;
}

/* Whether a row of the daemon is asked for. */
static bool peak_wants(const struct peak *peak, const struct peak_row *row)
{
	const struct filter *filter = &peak->request.filter;

	return (!row->is_ended || peak->request.ended || filter->pid) &&
	       peak_is_wanted(row, filter);
}

/* Adds the rows of the daemon, if there is one; what it does not know is no reason for a note. */
static void peak_ask(const struct peak *peak, struct daemon_client *remote, json_t **document,
		     struct peak_list *peaks, struct pool *pool)
{
	struct peak_list kept = PEAK_LIST_NULL;
	struct query query = peak->query;

	if (!remote || daemon_client_outcome(remote) != 0)
		return;
	query.given &= QUERY_BY | QUERY_PID; /* which of its rows are wanted is seen here */
	if (daemon_pages_ask(remote, ANSWERS_PEAK, &query, document) != 0)
		return;
	must_not_lack(fields_take(*document, peak_list_fields, &kept, pool));
	must_grow(peaks->rows, &peaks->capacity, peaks->count + kept.count);
	for (size_t i = 0; i < kept.count; i++) {
		if (peak_wants(peak, &kept.rows[i]))
			peak_add(peaks, &kept.rows[i]);
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

static void peak_write(const struct peak *peak, const struct session *session,
		       const struct snapshot *snapshot, const struct peak_list *peaks)
{
	const struct peak_text text = {
		.out = stdout, .indent = "", .rows = PEAK_ROWS, .is_spaced = true};
	struct emit writer = EMIT_INIT(stdout);

	if (peak->json) {
		document_put(&writer, &peak_document, snapshot, peaks);
		return;
	}
	output_page();
	session_print_moment(session);
	peak_text_put(&text, peaks);
	session_print_tip(stdout);
	session_print_notes(snapshot);
}

static int peak_show(const struct peak *peak, struct session *session, struct asked_for *asked)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(document_unload) json_t *document = NULL;
	CLEANUP(peak_list_deinit) struct peak_list peaks = PEAK_LIST_NULL;
	CLEANUP(pool_deinit) struct pool pool = POOL_NULL;
	int r = session_take(session, &peak->request, &snapshot);

	if (r < 0)
		return r;
	must_not_lack(peak_list_add(&peaks, snapshot, NULL, peak->query.by));
	peak_ask(peak, session_remote(session), &document, &peaks, &pool);
	peak_text_sort(&peaks);
	if (peaks.count == 0) {
		asked_for_check(asked, session, snapshot);
		if (!asked->is_missing && !peak->json)
			asked_for_tell_none(asked, "peak");
	}
	peak_write(peak, session, snapshot, &peaks);
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
