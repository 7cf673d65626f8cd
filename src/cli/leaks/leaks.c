/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem leaks: what ended processes left, from the daemon's records or a recording. */

#include "cli/leaks/leaks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "answers/answers.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/common/site-json.h"
#include "model/filter.h"
#include "model/query.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot-request.h"
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

static void leaks_print_signal(const json_t *exit)
{
	const char *name = daemon_pages_text(exit, "name"); /* daemons of before tell none */

	printf("killed by signal %" PRIu64, daemon_pages_number(exit, "signal"));
	if (name) {
		printf(" (");
		text_put(stdout, name);
		putchar(')');
	}
}

/* How the process ended, in words. */
static void leaks_print_end(const json_t *process)
{
	const json_t *exit = json_object_get(process, "exit");
	const char *how = daemon_pages_text(process, "how");

	if (json_is_number(json_object_get(exit, "signal")))
		leaks_print_signal(exit);
	else if (json_is_number(json_object_get(exit, "code")))
		printf("exit code %" PRIu64, daemon_pages_number(exit, "code"));
	else if (json_is_true(json_object_get(process, "exec")))
		printf("became another program");
	else if (how && strcmp(how, "closed") == 0)
		printf("ended in order");
	else
		printf("died");
}

/* What its buffers are called, if differently. */
static void leaks_print_names(const json_t *site)
{
	const json_t *rows = json_object_get(site, "names");
	struct call_site names[GROUP_NAMES_LISTED];
	size_t count = 0;

	for (; count < json_array_size(rows) && count < GROUP_NAMES_LISTED; count++) {
		const json_t *row = json_array_get(rows, count);

		names[count] = (struct call_site){
			.name = daemon_pages_text(row, "name"),
			.phase = daemon_pages_text(row, "phase"),
			.bytes = daemon_pages_number(row, "bytes"),
			.buffers = daemon_pages_number(row, "buffers"),
		};
	}
	session_print_names(stdout, names, count, daemon_pages_number(site, "name_count"),
			    LEAKS_INDENT);
}

static void leaks_print_site(const json_t *site, const char *place, uint64_t ended_ns)
{
	const char *type = daemon_pages_text(site, "type"), *name = daemon_pages_text(site, "name");
	const char *phase = daemon_pages_text(site, "phase");
	uint64_t oldest = daemon_pages_number(site, "oldest_ns"),
		 count = daemon_pages_number(site, "buffers");
	char number[TEXT_NUMBER_SIZE];

	printf("  %10s in %" PRIu64 " buffer%s of %s",
	       text_size(daemon_pages_number(site, "bytes"), number), count, count == 1 ? "" : "s",
	       type ? type : "?");
	if (name) {
		printf(", \"");
		text_put(stdout, name);
		putchar('"');
	}
	if (phase) {
		printf(", in ");
		text_put(stdout, phase);
	}
	if (oldest && oldest < ended_ns)
		printf(", %s old", text_duration(ended_ns - oldest, number));
	if (*place) {
		fputs(", at ", stdout);
		text_put(stdout, place);
	}
	putchar('\n');
	leaks_print_names(site);
	daemon_pages_print_stack(json_object_get(site, "stack"), LEAKS_INDENT "at ");
}

static void leaks_print_process(struct leaks *leaks, const json_t *process)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	const json_t *sites = json_object_get(process, "sites");
	uint64_t ended = daemon_pages_number(process, "ended_ns"), now = leaks->now_ns;
	uint64_t count = daemon_pages_number(process, "buffer_count");
	uint64_t bytes = daemon_pages_number(process, "bytes");
	const char *comm = daemon_pages_text(process, "comm"),
		   *user = daemon_pages_text(process, "user");
	char number[TEXT_NUMBER_SIZE];

	if (leaks->processes > 1)
		putchar('\n');
	printf("pid %" PRIu64 " (", daemon_pages_number(process, "pid"));
	text_put(stdout, comm ? comm : "?");
	printf(") of ");
	text_put(stdout, user ? user : "?");
	printf(", %s ago: ", text_duration(now > ended ? now - ended : 0, number));
	leaks_print_end(process);
	if (json_is_false(json_object_get(process, "buffers_known")))
		printf(", left %s; its buffers are not known: only tt-metal's region told of it\n",
		       text_size(bytes, number));
	else
		printf(", left %" PRIu64 " buffer%s, %s\n", count, count == 1 ? "" : "s",
		       text_size(bytes, number));
	daemon_pages_print_recording(process);
	for (size_t i = 0; i < json_array_size(sites) && i < LEAKS_SITES_MAX; i++) {
		const struct site site =
			site_json_read(json_object_get(json_array_get(sites, i), "site"));

		site_rows_add(&rows, &site);
	}
	site_rows_finish(&rows);
	for (size_t i = 0; i < json_array_size(sites) && i < LEAKS_SITES_MAX; i++)
		leaks_print_site(json_array_get(sites, i), site_rows_text(&rows, i), ended);
	session_find_tip(&rows);
	if (json_array_size(sites) > LEAKS_SITES_MAX)
		printf("    ... and %zu more call sites: see --json\n",
		       json_array_size(sites) - LEAKS_SITES_MAX);
}

static int leaks_print(void *context, const json_t *process)
{
	struct leaks *leaks = context;

	if (leaks->processes++ == 0 && leaks->csv)
		leaks_csv_begin(leaks->summary);
	else if (leaks->processes == 1 && leaks->summary)
		leaks_summary_begin(&leaks->table, output_width());
	leaks->bytes += daemon_pages_number(process, "bytes");
	leaks->buffers += daemon_pages_number(process, "buffer_count");
	if (leaks->csv)
		leaks_csv_rows(process, leaks->summary);
	else if (leaks->summary)
		leaks_summary_row(&leaks->table, process, leaks->now_ns);
	else
		leaks_print_process(leaks, process);
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
	int r = daemon_pages_rows(remote, query, leaks_print, leaks, &hidden);

	table_end(&leaks->table);
	if (r != 0)
		return r == -EPIPE ? 0 : r;
	leaks_print_sum(leaks, hidden);
	daemon_pages_print_hidden(hidden, "leak report");
	return 0;
}

static int leaks_write_recorded(const struct leaks *leaks, struct session *session, FILE *out)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_request request = {
		.buffers = true,
		.ended = true,
		.filter = leaks->query.filter,
		.namer = session_namer(session),
	};
	struct emit json = EMIT_INIT(out);
	int r = session_take(session, &request, &snapshot);

	return r < 0 ? r
		     : recorded_leaks_document(&json, snapshot, session_recording(session),
					       session_scan(session), &leaks->query);
}

/* A document as the daemon's: JSON as it is, or the same text. */
static int leaks_show_recorded(struct leaks *leaks, struct session *session)
{
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, i;
	const json_t *process;
	FILE *out;
	int r;

	if (leaks->json)
		return leaks_write_recorded(leaks, session, stdout);
	out = must_have(open_memstream(&text, &length));
	r = leaks_write_recorded(leaks, session, out);
	if (fclose(out) != 0)
		must_end();
	if (r < 0)
		return r;
	document = daemon_pages_load(text, length);
	if (!leaks->csv)
		session_print_moment(session);
	json_array_foreach(json_object_get(document, "processes"), i, process)
	{
		if (leaks_print(leaks, process) < 0)
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
