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

/* @stack: of the daemon's document, where the party has none. */
static void incidents_party(const struct snapshot *snapshot, const char *what,
			    const struct snapshot_party *party, const json_t *stack)
{
	uint64_t ago = snapshot->time_ns > party->time_ns ? snapshot->time_ns - party->time_ns : 0;
	char number[TEXT_NUMBER_SIZE];

	if (!party->known)
		return;
	printf("  %-6s %s ago by thread %" PRIu32, what, text_duration(ago, number), party->thread);
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
	session_print_stack(stdout, party->stack, INCIDENTS_INDENT);
	daemon_pages_print_stack(stack, INCIDENTS_INDENT);
}

static void incidents_print_ago(const struct snapshot *snapshot, uint64_t time_ns)
{
	uint64_t ago = snapshot->time_ns > time_ns ? snapshot->time_ns - time_ns : 0;
	char number[TEXT_NUMBER_SIZE];

	printf("%s ago", text_duration(ago, number));
}

/* Devices of the daemon's document, where there are several. */
static bool incidents_print_devices(const json_t *devices)
{
	size_t count = json_array_size(devices);

	if (count < 2)
		return false;
	if (count > INCIDENTS_DEVICES)
		printf(" on %zu devices", count);
	else
		printf(" on devices");
	for (size_t i = 0; i < count && count <= INCIDENTS_DEVICES; i++)
		printf("%s %" JSON_INTEGER_FORMAT, i ? "," : "",
		       json_integer_value(json_array_get(devices, i)));
	return true;
}

/* How often, and when first and last. Of one that happened once, the parties tell when. */
static void incidents_print_times(const struct snapshot *snapshot,
				  const struct snapshot_incident *incident, const json_t *row)
{
	uint64_t processes = daemon_pages_number(row, "processes");
	bool several;

	if (incident->count <= 1)
		return;
	printf(", %" PRIu64 " times", incident->count);
	several = incidents_print_devices(json_object_get(row, "devices"));
	if (processes > 1)
		printf(" in %" PRIu64 " processes", processes);
	if (several || processes > 1)
		printf(", this one the newest");
	printf(": first ");
	incidents_print_ago(snapshot, incident->time_ns);
	printf(", last ");
	incidents_print_ago(snapshot, incident->last_ns);
}

static void incidents_print_explanation(const char *text)
{
	char shown[INCIDENTS_EXPLANATION];

	text_escape(text, shown, sizeof(shown));
	printf("  ");
	output_put_wrapped(shown, 2);
	putchar('\n');
}

/* @row: the same in the daemon's document, which has more; or NULL. */
static void incidents_print_one(const struct snapshot *snapshot,
				const struct snapshot_incident *incident, const json_t *row)
{
	const struct snapshot_process *process = &snapshot->processes[incident->process];
	const char *type = types_name(incident->type);
	char number[TEXT_NUMBER_SIZE];

	printf("%s: pid %" PRIu32 " (", incident->kind, process->id.pid);
	text_put(stdout, process->comm);
	printf("), device %" PRIu32 "%s%s", incident->device, type ? ", " : "", type ? type : "");
	if (incident->has_address)
		printf(", address 0x%" PRIx64, incident->address);
	if (incident->size)
		printf(", %s", text_size(incident->size, number));
	if (incident->size_per_bank)
		printf(", %s in each bank", text_size(incident->size_per_bank, number));
	if (incident->largest_free != UINT64_MAX)
		printf(", largest free block %s%s", text_size(incident->largest_free, number),
		       incident->size_per_bank ? " in each bank" : "");
	if (strcmp(incident->kind, "leak") == 0)
		printf(" in %" PRIu64 " buffer%s", incident->count,
		       incident->count == 1 ? "" : "s");
	else
		incidents_print_times(snapshot, incident, row);
	putchar('\n');
	incidents_party(snapshot, "first", &incident->first,
			json_object_get(json_object_get(row, "first"), "stack"));
	incidents_party(snapshot, incident->first.known ? "then" : "", &incident->second,
			json_object_get(json_object_get(row, "second"), "stack"));
	if (incident->explanation)
		incidents_print_explanation(incident->explanation);
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
	for (size_t i = 0; i < snapshot->incident_count && !output_is_broken(); i++)
		incidents_print_one(snapshot, &snapshot->incidents[i], NULL);
	if (snapshot->incident_count == 0)
		incidents_print_none(filter, false);
	session_print_notes(snapshot);
}

static struct snapshot_party incidents_recall_party(const json_t *row, const char *key)
{
	const json_t *party = json_object_get(row, key);

	return (struct snapshot_party){
		.known = json_is_object(party),
		.time_ns = daemon_pages_number(party, "time_ns"),
		.size = daemon_pages_number(party, "size"),
		.thread = (uint32_t)daemon_pages_number(party, "thread"),
		.name = daemon_pages_text(party, "name"),
		.phase = daemon_pages_text(party, "phase"),
	};
}

static void incidents_print_holders(const json_t *row)
{
	const json_t *holders = json_object_get(row, "holders");
	char number[TEXT_NUMBER_SIZE];

	for (size_t i = 0; i < json_array_size(holders); i++) {
		const json_t *holder = json_array_get(holders, i);
		const char *comm = daemon_pages_text(holder, "comm"),
			   *type = daemon_pages_text(holder, "type");

		printf("  held by pid %" PRIu64 " (", daemon_pages_number(holder, "pid"));
		text_put(stdout, comm ? comm : "?");
		printf("): %s of %s\n", text_size(daemon_pages_number(holder, "used"), number),
		       type ? type : "?");
	}
}

/* Leaks are only summed up here: "ttmem leaks" lists them, and one training run has hundreds. */
struct incidents_recalled {
	uint64_t count;
	uint64_t leak_sites;
	uint64_t leaked;
};

/* Prints a row of the daemon's document like an incident from a book. */
static int incidents_recall_print(void *context, const json_t *row)
{
	struct incidents_recalled *recalled = context;
	const char *kind = daemon_pages_text(row, "kind"), *comm = daemon_pages_text(row, "comm");
	const char *type = daemon_pages_text(row, "type"),
		   *address = daemon_pages_text(row, "address");
	struct snapshot_process process = {
		.id.pid = (uint32_t)daemon_pages_number(row, "pid"),
		.comm = comm ? comm : "?",
	};
	struct snapshot snapshot = {
		.time_ns = clock_ns(CLOCK_REALTIME),
		.processes = &process,
		.process_count = 1,
	};
	struct snapshot_incident incident = {
		.kind = kind ? kind : "incident",
		.device = (uint32_t)daemon_pages_number(row, "device"),
		.type = SNAPSHOT_TYPE_NONE,
		.size = daemon_pages_number(row, "size"),
		.largest_free = UINT64_MAX,
		.explanation = daemon_pages_text(row, "explanation"),
		.size_per_bank = daemon_pages_number(row, "size_per_bank"),
		.count = daemon_pages_number(row, "count"),
		.time_ns = daemon_pages_number(row, "time_ns"),
		.last_ns = daemon_pages_number(row, "last_ns"),
		.first = incidents_recall_party(row, "first"),
		.second = incidents_recall_party(row, "second"),
	};

	incident.has_address = address && text_parse_u64(address, &incident.address) == 0;
	if (type)
		(void)types_parse(type, &incident.type); /* an unknown type is not shown */
	if (json_is_number(json_object_get(row, "largest_free")))
		incident.largest_free = daemon_pages_number(row, "largest_free");
	recalled->count++;
	if (strcmp(incident.kind, "leak") == 0) {
		recalled->leak_sites++;
		recalled->leaked += incident.count;
		return 0;
	}
	incidents_print_one(&snapshot, &incident, row);
	incidents_print_holders(row);
	daemon_pages_print_recording(row);
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
	r = daemon_pages_rows(remote, query, incidents_recall_print, &recalled, &hidden);
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
	if (r == 0) {
		request.namer = session_namer(session);
		r = session_take(session, &request, &snapshot);
	}
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
