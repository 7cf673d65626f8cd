/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem incidents: double frees, unknown frees, size changes, failed allocations, leaks. */

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/document.h"
#include "core/snapshot.h"
#include "core/types.h"

static void incidents_party(const struct snapshot *snapshot, const char *what,
			    const struct snapshot_party *party)
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
}

static void incidents_print_one(const struct snapshot *snapshot,
				const struct snapshot_incident *incident)
{
	const struct snapshot_process *process = &snapshot->processes[incident->process];
	const char *type = types_name(incident->type);
	char number[TEXT_NUMBER_SIZE];

	printf("%s: pid %" PRIu32 " (", incident->kind, process->pid);
	text_put(stdout, process->comm);
	printf("), device %" PRIu32 "%s%s", incident->device, type ? ", " : "", type ? type : "");
	if (incident->has_address)
		printf(", address 0x%" PRIx64, incident->address);
	if (incident->size)
		printf(", %s", text_size(incident->size, number));
	if (incident->largest_free != UINT64_MAX)
		printf(", largest free block %s", text_size(incident->largest_free, number));
	if (strcmp(incident->kind, "leak") == 0)
		printf(" in %" PRIu64 " buffer%s", incident->count,
		       incident->count == 1 ? "" : "s");
	else if (incident->count > 1)
		printf(", %" PRIu64 " times", incident->count);
	putchar('\n');
	incidents_party(snapshot, "first", &incident->first);
	incidents_party(snapshot, incident->first.known ? "then" : "", &incident->second);
}

static void incidents_print(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->incident_count && !output_is_broken(); i++)
		incidents_print_one(snapshot, &snapshot->incidents[i]);
	if (snapshot->incident_count == 0)
		puts("no incidents");
	look_print_notes(snapshot);
}

static int incidents_run(int argc, char **argv)
{
	CLEANUP(look_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(look_cleanup) struct look *look = NULL;
	struct source_request request = {.incidents = true};
	bool json = false;
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process", &request.filter, options_pid},
		{0, "json", NULL, "as JSON", &json, NULL},
	};
	const struct options options = {
		.command = "incidents",
		.summary =
			"Double frees, unknown frees, size changes, failed allocations, and what "
			"ended processes left.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	struct emit writer = EMIT_INIT(stdout);
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = look_new(&look);
	if (r == 0)
		r = look_take(look, &request, &snapshot);
	if (r != 0)
		return output_fail("incidents", "cannot look at processes", r);
	if (json)
		document_incidents(&writer, snapshot);
	else
		incidents_print(snapshot);
	return output_finish();
}

const struct command incidents_command = {
	.name = "incidents",
	.summary = "double frees, unknown frees, size changes, failed allocations",
	.run = incidents_run,
};
