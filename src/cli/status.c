/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem status: whether a daemon runs, which one, and its state. */

#include <inttypes.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/status.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "source/daemon-client/daemon-client.h"

/* Without a daemon there is still a document. */
static void status_json_none(const struct daemon_client *remote)
{
	const char *reason = daemon_client_reason(remote);
	const struct document_about about = {
		.time_ns = clock_ns(CLOCK_REALTIME),
		.notes = &reason,
		.note_count = 1,
	};
	struct emit json = EMIT_INIT(stdout);

	document_put_about(&json, &status_document, &about,
			   &(struct status_row){.is_running = false});
}

static void status_print_past(const struct health *health)
{
	char number[TEXT_NUMBER_SIZE];

	if (!health->store_runs)
		puts("past:    nothing can be remembered at present");
	else
		printf("past:    %s, %" PRIu64 " records written\n",
		       text_size(health->store_bytes, number), health->store_written);
	if (health->store_dropped)
		printf("         %" PRIu64
		       " were lost: the disk was too slow or full, or their user had too many\n",
		       health->store_dropped);
}

/* "1 book refused", below the line that it belongs to. */
static void status_print_count(uint64_t count, const char *what, const char *how)
{
	printf("         %" PRIu64 " %s%s %s\n", count, what, count == 1 ? "" : "s", how);
}

static void status_print_flight(const struct health *health)
{
	const struct health_flight *flight = &health->flight;
	uint64_t left_out = health->limits[QUOTA_FLIGHT_LEFT_OUT];
	uint64_t failed = health->limits[QUOTA_FLIGHT_FAILED];
	char number[TEXT_NUMBER_SIZE];

	printf("flight:  %s of the last events, %" PRIu64 " recording%s kept\n",
	       text_size(flight->bytes, number), flight->files, flight->files == 1 ? "" : "s");
	if (flight->late_users)
		printf("         too many events of %" PRIu32
		       " user%s: keyframes only at present, with gaps in between\n",
		       flight->late_users, flight->late_users == 1 ? "" : "s");
	if (left_out)
		status_print_count(left_out, "book", "left out: too large, or too many");
	if (failed)
		status_print_count(failed, "recording", "not written");
}

/* What others have, or what is in the way. */
static void status_print_doors(const struct status_row *row)
{
	for (size_t i = 0; i < row->door_count; i++) {
		const struct status_door *door = &row->doors[i];

		if (door->is_open)
			continue;
		printf("missing: ");
		text_put(stdout, door->name ? door->name : "?");
		printf(": ");
		text_put(stdout, door->where ? door->where : "?");
		printf(": ");
		text_put(stdout, door->problem ? door->problem : "not known yet");
		putchar('\n');
	}
}

static void status_print_limits(const struct status_row *row)
{
	for (size_t i = 0; i < row->limit_count; i++) {
		const struct status_limit *limit = &row->limits[i];

		printf("%s%" PRIu64 " ", i == 0 ? "limits:  " : "         ", limit->count);
		text_put(stdout, limit->metric ? limit->metric : "?");
		printf(": ");
		text_put(stdout, limit->help ? limit->help : "?");
		putchar('\n');
	}
}

static void status_print(const struct daemon_client *remote, const struct status_row *row)
{
	const struct health *health = &row->health;
	uint64_t now = clock_ns(CLOCK_REALTIME);
	char number[TEXT_NUMBER_SIZE];

	printf("ttmemd:  pid %" PRIu32 ", user %" PRIu32 ", version ", row->pid, row->user_id);
	text_put(stdout, health->version ? health->version : "?");
	if (health->start_ns)
		printf(", since %s", text_duration(now - bits_min(now, health->start_ns), number));
	printf("\nsocket:  ");
	text_put(stdout, daemon_client_path(remote));
	if (health->http) {
		printf("\nhttp:    http://");
		text_put(stdout, health->http);
		putchar('/');
	}
	printf("\nbooks:   %" PRIu64 " now, %" PRIu64 " of ended processes, %" PRIu64
	       " of them with something left\n",
	       health->books, health->ended, health->leaked);
	if (health->books_refused)
		status_print_count(health->books_refused, "book", "refused");
	if (health->unobserved_exits)
		printf("         ended unobserved: %" PRIu64 "\n", health->unobserved_exits);
	status_print_past(health);
	if (row->has_flight)
		status_print_flight(health);
	status_print_doors(row);
	status_print_limits(row);
	printf("you see: %s\n",
	       row->you_see_all ? "the details of all processes"
				: "the details of your own processes, totals of the others");
}

static int status_run(int argc, char **argv)
{
	CLEANUP(daemon_client_cleanup) struct daemon_client *remote = NULL;
	CLEANUP(document_unload) json_t *status = NULL;
	CLEANUP_FREE char *text = NULL;
	struct status_row row = {0};
	bool json = false;
	const struct options_item items[] = {{0, "json", NULL, "as JSON", &json, NULL}};
	const struct options options = {
		.command = "status",
		.summary = "Whether ttmemd runs, which one, and its state.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	size_t length;
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = daemon_client_new(&remote);
	if (r < 0)
		return output_fail("status", "cannot ask ttmemd", r);
	r = daemon_client_get(remote, answers[ANSWERS_STATUS].path, NULL, &text, &length);
	if (r != 0 && json) {
		status_json_none(remote);
		(void)output_finish(); /* the exit code is 1 anyway */
		return COMMAND_FAILED;
	}
	if (r != 0)
		return daemon_pages_fail("status", remote, r);
	status = document_load(text, length);
	(void)fields_take(status, status_fields, &row, NULL);
	if (json)
		fwrite(text, 1, length, stdout);
	else
		status_print(remote, &row);
	return output_finish();
}

const struct command status_command = {
	.name = "status",
	.summary = "whether ttmemd runs, and its state",
	.run = status_run,
};
