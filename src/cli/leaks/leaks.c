/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem leaks: what ended processes left, from the daemon's records or a recording. */

#include "cli/leaks/leaks.h"

#include <errno.h>
#include <inttypes.h>

#include "answers/answers.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/filter.h"
#include "model/query.h"
#include "model/sites/site-rows.h"
#include "model/snapshot-request.h"
#include "model/types.h"
#include "recording/json/recorded-leaks.h"
#include "source/daemon-client/daemon-client.h"

struct leaks {
	struct query query;
	struct options_from from;
	uint64_t now_ns;
	bool json;
	bool csv;
	bool summary;       /* a line for each process */
	bool full;          /* also on a terminal */
	struct table table; /* of the summary */
	uint64_t processes, bytes, buffers;
};

#define LEAKS_SITES_MAX 20u /* per process, the largest: as many as a person reads */

#define LEAKS_INDENT "              "

static void leaks_print_site(const struct site_row *site, const char *place, uint64_t ended_ns)
{
	const char *type = types_name(site->type);
	char number[TEXT_NUMBER_SIZE];

	printf("  %10s in %" PRIu64 " buffer%s of %s", text_size(site->bytes, number),
	       site->buffers, site->buffers == 1 ? "" : "s", type ? type : "?");
	if (site->names.name) {
		printf(", \"");
		text_put(stdout, site->names.name);
		putchar('"');
	}
	if (site->phase) {
		printf(", in ");
		text_put(stdout, site->phase);
	}
	if (site->oldest_ns && site->oldest_ns < ended_ns)
		printf(", %s old", text_duration(ended_ns - site->oldest_ns, number));
	if (*place) {
		fputs(", at ", stdout);
		text_put(stdout, place);
	}
	putchar('\n');
	session_print_names(stdout, site->names.names, site->names.listed, site->names.count,
			    LEAKS_INDENT);
	daemon_pages_print_stack(&site->stack, LEAKS_INDENT "at ");
}

static void leaks_print_process(struct leaks *leaks, const struct leaks_row *leak)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	const struct ended_row *ended = &leak->ended;
	size_t shown = bits_min(leak->site_count, LEAKS_SITES_MAX);
	char number[TEXT_NUMBER_SIZE], words[ENDED_WORDS];

	if (leaks->processes > 1)
		putchar('\n');
	printf("pid %" PRIu32 " (", ended->pid);
	text_put(stdout, ended->comm ? ended->comm : "?");
	printf(") of ");
	text_put(stdout, ended->user ? ended->user : "?");
	printf(", %s ago: ",
	       text_duration(bits_max(leaks->now_ns, ended->ended_ns) - ended->ended_ns, number));
	text_put(stdout, ended_words(ended, false, words));
	if (leak->is_totals_only)
		printf(", left %s; its buffers are not known: only tt-metal's region told of it\n",
		       text_size(ended->bytes, number));
	else
		printf(", left %" PRIu64 " buffer%s, %s\n", ended->buffers,
		       ended->buffers == 1 ? "" : "s", text_size(ended->bytes, number));
	daemon_pages_print_recording(leak->recording);
	for (size_t i = 0; i < shown; i++) {
		const struct site site = call_stack_site(leak->sites[i].stack.site);

		site_rows_add(&rows, &site);
	}
	site_rows_finish(&rows);
	for (size_t i = 0; i < shown; i++)
		leaks_print_site(&leak->sites[i], site_rows_text(&rows, i), ended->ended_ns);
	session_find_tip(&rows);
	if (leak->site_count > shown)
		printf("    ... and %zu more call sites: see --json\n", leak->site_count - shown);
}

static int leaks_print(void *context, const void *row)
{
	struct leaks *leaks = context;
	const struct leaks_row *leak = row;

	if (leaks->processes++ == 0 && leaks->csv)
		leaks_csv_begin(leaks->summary);
	else if (leaks->processes == 1 && leaks->summary)
		leaks_summary_begin(&leaks->table, output_width());
	leaks->bytes += leak->ended.bytes;
	leaks->buffers += leak->ended.buffers;
	if (leaks->csv)
		leaks_csv_rows(leak, leaks->summary);
	else if (leaks->summary)
		leaks_summary_row(&leaks->table, leak, leaks->now_ns);
	else
		leaks_print_process(leaks, leak);
	return output_is_broken() ? -EPIPE : 0;
}

static void leaks_print_sum(const struct leaks *leaks, uint64_t hidden)
{
	char number[TEXT_NUMBER_SIZE];

	if (leaks->csv) {
		if (leaks->processes == 0)
			leaks_csv_begin(leaks->summary);
		return;
	}
	if (leaks->processes == 0 && leaks->query.filter.pid)
		printf("nothing is known that process %" PRIu32 " left%s\n",
		       leaks->query.filter.pid, hidden ? ", or you may not see it" : "");
	else if (leaks->processes == 0)
		printf("no ended process%s left anything\n", hidden ? " of yours" : "");
	else if (leaks->processes > 1)
		printf("\n%" PRIu64 " processes, %" PRIu64 " buffer%s, %s\n", leaks->processes,
		       leaks->buffers, leaks->buffers == 1 ? "" : "s",
		       text_size(leaks->bytes, number));
	if (leaks->processes > 0 && leaks->summary)
		puts("Call sites: \"ttmem leaks --pid PID\" for one process, --full for all.");
	session_print_tip(stdout);
}

static int leaks_text(struct leaks *leaks, struct daemon_client *remote,
		      const struct daemon_pages_query *query)
{
	uint64_t hidden;
	int r = daemon_pages_each(remote, query, leaks_print, leaks, &hidden);

	table_end(&leaks->table);
	if (r != 0)
		return r == -EPIPE ? 0 : r;
	leaks_print_sum(leaks, hidden);
	daemon_pages_print_hidden(hidden, "leak report");
	return 0;
}

static int leaks_show_recorded(struct leaks *leaks, struct session *session)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(recorded_leaks_deinit)
	struct recorded_leaks list = {
		.recording = session_recording(session),
		.query = &leaks->query,
	};
	const struct snapshot_request request = {
		.buffers = true,
		.ended = true,
		.filter = leaks->query.filter,
		.namer = session_namer(session),
	};
	struct emit json = EMIT_INIT(stdout);
	const struct leaks_row *row;
	struct recorded_leak room;
	int r = session_take(session, &request, &snapshot);

	if (r < 0)
		return r;
	list.scan = session_scan(session);
	list.snapshot = snapshot;
	r = recorded_leaks_init(&list);
	if (r == 0 && leaks->json)
		recorded_leaks_put(&json, &list);
	if (r < 0 || leaks->json)
		return r;
	if (!leaks->csv)
		session_print_moment(session);
	for (size_t at = 0; (row = recorded_leaks_next(&list, &at, &room));) {
		if (leaks_print(leaks, row) < 0)
			break;
	}
	table_end(&leaks->table);
	leaks_print_sum(leaks, 0);
	return 0;
}

static int leaks_run_recorded(struct leaks *leaks)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	int r = session_start(&session, "leaks", &leaks->from, NULL);

	if (r != 0)
		return r;
	if (!leaks->json && !leaks->csv)
		output_page();
	leaks->now_ns = session_now(session);
	r = leaks_show_recorded(leaks, session);
	return r < 0 ? output_fail("leaks", "cannot read the recording", r) : output_finish();
}

static int leaks_cursor(void *query, const char *text)
{
	return daemon_pages_is_cursor(text)
		       ? query_set(query, query_find("cursor", QUERY_CURSOR), text)
		       : -EINVAL;
}

static int leaks_parse(struct leaks *leaks, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process"},
		{0, "since", "WHEN",
		 "only of processes that ended since: 2h, 16:03, 2026-11-17, ns since 1970",
		 &leaks->query, options_since},
		{0, "summary", NULL, "a line for each process, as on a terminal", &leaks->summary,
		 NULL},
		{0, "full", NULL, "with call sites, also on a terminal", &leaks->full, NULL},
		{0, "limit", "N", "with --json: one page, of at most so many processes",
		 &leaks->query.limit, options_u32},
		{0, "cursor", "NEXT", "with --json: go on where \"next\" of a page says",
		 &leaks->query, leaks_cursor},
		OPTIONS_FROM(&leaks->from),
		{0, "json", NULL, "as JSON", &leaks->json, NULL},
		{0, "csv", NULL, "call sites as CSV; processes with --summary", &leaks->csv, NULL},
	};
	const struct options options = {
		.command = "leaks",
		.shows_sizes = true,
		.summary = "What ended processes left, as ttmemd remembers it.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &leaks->query,
		.answer = &answers[ANSWERS_LEAKS],
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && !leaks->json && (leaks->query.limit || leaks->query.cursor))
		r = options_mistake("leaks", "--limit and --cursor need --json");
	if (r == 0 && leaks->query.limit > QUERY_LIMIT_MAX)
		r = options_mistake("leaks", "--limit expects at most %u, got %" PRIu32,
				    QUERY_LIMIT_MAX, leaks->query.limit);
	if (r == 0 && leaks->json && leaks->csv)
		r = options_mistake("leaks", "--json or --csv, not both");
	if (r == 0 && leaks->summary && leaks->full)
		r = options_mistake("leaks", "--summary or --full, not both");
	if (r == 0 && leaks->json && (leaks->summary || leaks->full))
		r = options_mistake("leaks", "--json is always complete: no --summary or --full");
	if (r == 0 && leaks->from.file && (leaks->query.limit || leaks->query.cursor))
		r = options_mistake("leaks", "a recording is shown whole, not in pages");
	return r;
}

static int leaks_run(int argc, char **argv)
{
	CLEANUP(daemon_client_cleanup) struct daemon_client *remote = NULL;
	struct leaks leaks = {.json = false};
	struct daemon_pages_query query = {.answer = &answers[ANSWERS_LEAKS], .names = true};
	bool is_begun; /* there is nothing to print instead */
	int r = leaks_parse(&leaks, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	/* Whoever asks for one process, or reads with a program, wants all that there is. */
	if (output_is_terminal() && !leaks.full && !leaks.query.filter.pid && !leaks.csv)
		leaks.summary = true;
	if (leaks.from.file || leaks.from.at)
		return leaks_run_recorded(&leaks);
	leaks.now_ns = clock_ns(CLOCK_REALTIME);
	if (leaks.query.limit)
		leaks.query.given |= QUERY_LIMIT;
	if (!leaks.json)
		leaks.query.given |= QUERY_BUFFERS; /* none: the text has only call sites */
	query.query = leaks.query;
	r = daemon_client_new(&remote);
	if (r < 0)
		return output_fail("leaks", "cannot ask ttmemd", r);
	if (!leaks.json && !leaks.csv)
		output_page();
	r = leaks.json ? daemon_pages_document(remote, &query, stdout, &is_begun)
		       : leaks_text(&leaks, remote, &query);
	if (r != 0) {
		(void)output_finish(); /* print what there is; the failure is reported below */
		r = daemon_pages_fail("leaks", remote, r);
		if (!leaks.json)
			fputs("Only ttmemd remembers ended processes; \"ttmem run --fail-on-leak "
			      "-- "
			      "CMD\" watches a single program without it.\n",
			      stderr);
		return r;
	}
	return output_finish();
}

const struct command leaks_command = {
	.name = "leaks",
	.summary = "what ended processes left",
	.run = leaks_run,
};
