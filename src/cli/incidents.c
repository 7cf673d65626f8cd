/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem incidents: double frees, unknown frees, size changes, failed allocations, leaks. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/incidents.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"

#define INCIDENTS_INDENT "         "
#define INCIDENTS_DEVICES 8u         /* more are only counted */
#define INCIDENTS_EXPLANATION 16384u /* bytes that are shown */
#define INCIDENTS_EXPLAINED 16u      /* of a process, the newest */

static void incidents_print_ago(uint64_t now_ns, uint64_t time_ns)
{
	char number[TEXT_NUMBER_SIZE];

	printf("%s ago", text_duration(bits_max(now_ns, time_ns) - time_ns, number));
}

static void incidents_party(const char *what, const struct incident_party *party, uint64_t now_ns)
{
	char number[TEXT_NUMBER_SIZE];

	if (!party)
		return;
	printf("  %-6s ", what);
	incidents_print_ago(now_ns, party->time_ns);
	printf(" by thread %" PRIu32, party->thread);
	if (party->size)
		printf(", %s", text_size(party->size, number));
	if (party->name) {
		printf(", \"");
		text_put(stdout, party->name);
		putchar('"');
	}
	if (party->phase) {
		printf(", in ");
		text_put(stdout, party->phase);
	}
	putchar('\n');
	daemon_pages_print_stack(&party->stack, INCIDENTS_INDENT);
}

/* Where there are several, which only the daemon knows. */
static bool incidents_print_devices(const struct incident_row *row)
{
	if (row->device_count < 2)
		return false;
	if (row->device_count > INCIDENTS_DEVICES)
		printf(" on %zu devices", row->device_count);
	else
		printf(" on devices");
	for (size_t i = 0; i < row->device_count && row->device_count <= INCIDENTS_DEVICES; i++)
		printf("%s %" PRIu64, i ? "," : "", row->devices[i]);
	return true;
}

/* How often, and when first and last. Of one that happened once, the parties tell when. */
static void incidents_print_times(const struct incident_row *row, uint64_t now_ns)
{
	bool several;

	if (row->count <= 1)
		return;
	printf(", %" PRIu64 " times", row->count);
	several = incidents_print_devices(row);
	if (row->processes > 1)
		printf(" in %" PRIu64 " processes", row->processes);
	if (several || row->processes > 1)
		printf(", this one the newest");
	printf(": first ");
	incidents_print_ago(now_ns, row->time_ns);
	printf(", last ");
	incidents_print_ago(now_ns, row->last_ns);
}

static void incidents_print_explanation(const char *text)
{
	char shown[INCIDENTS_EXPLANATION];

	text_escape(text, shown, sizeof(shown));
	printf("  ");
	output_put_wrapped(shown, 2);
	putchar('\n');
}

static void incidents_print_holders(const struct incident_row *row)
{
	char number[TEXT_NUMBER_SIZE];

	for (size_t i = 0; i < row->holder_count; i++) {
		const struct incident_holder *holder = &row->holders[i];
		const char *type = types_name(holder->type);

		printf("  held by pid %" PRIu32 " (", holder->pid);
		text_put(stdout, holder->comm ? holder->comm : "?");
		printf("): %s of %s\n", text_size(holder->used, number), type ? type : "?");
	}
}

static bool incidents_is_leak(const struct incident_row *row)
{
	return row->kind && strcmp(row->kind, "leak") == 0;
}

static void incidents_print_one(const struct incident_row *row, uint64_t now_ns)
{
	const char *type = types_name(row->type);
	char number[TEXT_NUMBER_SIZE];

	printf("%s: pid %" PRIu32 " (", row->kind ? row->kind : "incident", row->pid);
	text_put(stdout, row->comm ? row->comm : "?");
	printf("), device %" PRIu32 "%s%s", row->device, type ? ", " : "", type ? type : "");
	if (row->has_address)
		printf(", address 0x%" PRIx64, row->address);
	if (row->size)
		printf(", %s", text_size(row->size, number));
	if (row->size_per_bank)
		printf(", %s in each bank", text_size(row->size_per_bank, number));
	if (row->has_largest_free)
		printf(", largest free block %s%s", text_size(row->largest_free, number),
		       row->size_per_bank ? " in each bank" : "");
	if (incidents_is_leak(row))
		printf(" in %" PRIu64 " buffer%s", row->count, row->count == 1 ? "" : "s");
	else
		incidents_print_times(row, now_ns);
	putchar('\n');
	incidents_party("first", row->first, now_ns);
	incidents_party(row->first ? "then" : "", row->second, now_ns);
	if (row->explanation)
		incidents_print_explanation(row->explanation);
	incidents_print_holders(row);
	daemon_pages_print_recording(row->recording);
}

static void incidents_print_none(const struct filter *filter, bool has_hidden)
{
	if (filter->pid)
		printf("no incidents of process %" PRIu32 "%s\n", filter->pid,
		       has_hidden ? " that you may see" : "");
	else
		printf("no incidents%s\n", has_hidden ? " of yours" : "");
}

static void incidents_print(const struct snapshot *snapshot, const struct filter *filter)
{
	struct incident_room room;

	for (size_t i = 0; i < snapshot->incident_count && !output_is_broken(); i++) {
		const struct incident_row row =
			incident_row_of(snapshot, &snapshot->incidents[i], &room);

		incidents_print_one(&row, snapshot->time_ns);
	}
	if (snapshot->incident_count == 0)
		incidents_print_none(filter, false);
	session_print_notes(snapshot);
}

/* Leaks are only summed up here: "ttmem leaks" lists them, and one training run has hundreds. */
struct incidents_recalled {
	uint64_t count;
	uint64_t leak_sites;
	uint64_t leaked;
};

static int incidents_recall_print(void *context, const void *incident)
{
	struct incidents_recalled *recalled = context;
	const struct incident_row *row = incident;

	recalled->count++;
	if (incidents_is_leak(row)) {
		recalled->leak_sites++;
		recalled->leaked += row->count;
		return 0;
	}
	incidents_print_one(row, clock_ns(CLOCK_REALTIME));
	return output_is_broken() ? -EPIPE : 0;
}

/*
 * Incidents from the daemon, including those of ended processes. 0, an outcome, or a negative
 * errno; @ret_is_begun: something was written.
 */
static int incidents_recall(struct daemon_client *remote, const struct daemon_pages_query *query,
			    bool json, bool *ret_is_begun)
{
	struct incidents_recalled recalled = {0};
	uint64_t hidden;
	int r;

	if (json)
		return daemon_pages_document(remote, query, stdout, ret_is_begun);
	r = daemon_pages_each(remote, query, incidents_recall_print, &recalled, &hidden);
	*ret_is_begun = recalled.count > 0;
	if (r == 0 && recalled.count == 0)
		incidents_print_none(&query->query.filter, hidden > 0);
	if (r == 0 && recalled.leak_sites > 0)
		printf("leak: %" PRIu64 " buffer%s of %" PRIu64
		       " call site%s left by ended processes; \"ttmem leaks\" lists them\n",
		       recalled.leaked, recalled.leaked == 1 ? "" : "s", recalled.leak_sites,
		       recalled.leak_sites == 1 ? "" : "s");
	if (r == 0)
		daemon_pages_print_hidden(hidden, "incident");
	return r == -EPIPE ? 0 : r;
}

static void incidents_show(struct session *session, const struct snapshot *snapshot,
			   const struct filter *filter, bool json)
{
	struct emit writer = EMIT_INIT(stdout);

	if (json) {
		document_put(&writer, &incidents_document, snapshot, snapshot);
		return;
	}
	session_print_moment(session);
	incidents_print(snapshot, filter);
}

static int incidents_run(int argc, char **argv)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct snapshot_request request = {.incidents = true, .explained = INCIDENTS_EXPLAINED};
	struct daemon_pages_query query = {.answer = &answers[ANSWERS_INCIDENTS], .names = true};
	struct asked_for asked = {.command = "incidents", .filter = &request.filter};
	struct options_from from = {0};
	bool json = false, is_begun = false;
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process"},
		{0, "strict-close", NULL,
		 "also what was live when its device was closed; of running processes, without the "
		 "daemon",
		 &request.held_at_close, NULL},
		OPTIONS_FROM(&from),
		{0, "json", NULL, "as JSON", &json, NULL},
	};
	const struct options options = {
		.command = "incidents",
		.shows_sizes = true,
		.summary = "Double frees, unknown frees, size changes, failed allocations, "
			   "overlapping memory, and what ended processes left.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query.query,
		.answer = query.answer,
	};
	CLEANUP_FREE char *older = NULL; /* why the daemon's records are missing */
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	request.filter = query.query.filter;
	r = session_start(&session, "incidents", &from, &request.filter);
	if (r != 0)
		return r;
	/* A daemon has such incidents only if it was started to collect them, and of ended processes. */
	if (!session_recording(session) && !request.held_at_close) {
		r = incidents_recall(session_remote(session), &query, json, &is_begun);
		if (r == 0)
			return output_finish();
		if (is_begun) {
			(void)output_finish(); /* print what there is; the failure is told below */
			return daemon_pages_fail("incidents", session_remote(session), r);
		}
		if (r == DAEMON_CLIENT_OLDER)
			older = strdup(daemon_client_reason(session_remote(session)));
		r = r > 0 ? 0 : r; /* fall back to the books of live processes */
	}
	request.namer = session_namer(session);
	r = r == 0 ? session_take(session, &request, &snapshot) : r;
	if (r != 0)
		return output_fail("incidents", "cannot look at processes", r);
	if (older)
		snapshot_note(snapshot, "%s", older);
	asked.is_json = json;
	asked_for_check(&asked, session, snapshot);
	incidents_show(session, snapshot, &request.filter, json);
	return asked_for_exit(&asked, output_finish());
}

const struct command incidents_command = {
	.name = "incidents",
	.summary = "double frees, unknown frees, size changes, failed allocations",
	.run = incidents_run,
};
