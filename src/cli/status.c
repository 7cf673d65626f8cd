/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem status: whether a daemon runs, which one, and its state. */

#include <inttypes.h>
#include <string.h>

#include "answers/document.h"
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

static void status_cleanup(struct daemon_client **remote)
{
	daemon_client_free(*remote);
}

/* Without a daemon there is still a document. */
static void status_json_none(const struct daemon_client *remote)
{
	struct emit json = EMIT_INIT(stdout);

	document_open(&json, "ttmem.status/1", clock_ns(CLOCK_REALTIME));
	emit_bool(&json, "running", false);
	emit_open_array(&json, "notes");
	emit_string(&json, NULL, daemon_client_reason(remote));
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}

static void status_print_past(const json_t *past)
{
	char number[TEXT_NUMBER_SIZE];

	if (!json_is_true(json_object_get(past, "running")))
		puts("past:    nothing can be remembered at present");
	else
		printf("past:    %s, %" PRIu64 " records written\n",
		       text_size(daemon_pages_number(past, "bytes"), number),
		       daemon_pages_number(past, "written"));
	if (daemon_pages_number(past, "dropped"))
		printf("         %" PRIu64
		       " were lost: the disk was too slow or full, or their user had too many\n",
		       daemon_pages_number(past, "dropped"));
}

/* "1 book refused", below the line that it belongs to. */
static void status_print_count(uint64_t count, const char *what, const char *how)
{
	printf("         %" PRIu64 " %s%s %s\n", count, what, count == 1 ? "" : "s", how);
}

static void status_print_flight(const json_t *flight)
{
	char number[TEXT_NUMBER_SIZE];
	uint64_t late = daemon_pages_number(flight, "late_users");
	uint64_t files = daemon_pages_number(flight, "files");

	if (!json_is_object(flight))
		return;
	printf("flight:  %s of the last events, %" PRIu64 " recording%s kept\n",
	       text_size(daemon_pages_number(flight, "bytes"), number), files,
	       files == 1 ? "" : "s");
	if (late)
		printf("         too many events of %" PRIu64
		       " user%s: keyframes only at present, with gaps in between\n",
		       late, late == 1 ? "" : "s");
	if (daemon_pages_number(flight, "left_out"))
		status_print_count(daemon_pages_number(flight, "left_out"), "book",
				   "left out: too large, or too many");
	if (daemon_pages_number(flight, "failed"))
		status_print_count(daemon_pages_number(flight, "failed"), "recording",
				   "not written");
}

/* What others have, or what is in the way. */
static void status_print_doors(const json_t *doors)
{
	const json_t *door;
	size_t i;

	json_array_foreach(doors, i, door)
	{
		const char *name = daemon_pages_text(door, "name");
		const char *where = daemon_pages_text(door, "where");
		const char *problem = daemon_pages_text(door, "problem");

		if (json_is_true(json_object_get(door, "open")))
			continue;
		printf("missing: ");
		text_put(stdout, name ? name : "?");
		printf(": ");
		text_put(stdout, where ? where : "?");
		printf(": ");
		text_put(stdout, problem ? problem : "not known yet");
		putchar('\n');
	}
}

static void status_print(const struct daemon_client *remote, const json_t *status)
{
	uint64_t start = daemon_pages_number(status, "start_ns"), now = clock_ns(CLOCK_REALTIME);
	const char *version = daemon_pages_text(status, "version");
	const char *http = daemon_pages_text(status, "http");
	char number[TEXT_NUMBER_SIZE];

	printf("ttmemd:  pid %" PRIu64 ", user %" PRIu64 ", version ",
	       daemon_pages_number(status, "pid"), daemon_pages_number(status, "user_id"));
	text_put(stdout, version ? version : "?");
	if (start)
		printf(", since %s", text_duration(now > start ? now - start : 0, number));
	printf("\nsocket:  ");
	text_put(stdout, daemon_client_path(remote));
	if (http) {
		printf("\nhttp:    http://");
		text_put(stdout, http);
		putchar('/');
	}
	printf("\nbooks:   %" PRIu64 " now, %" PRIu64 " of ended processes, %" PRIu64
	       " of them with something left\n",
	       daemon_pages_number(status, "books"), daemon_pages_number(status, "ended"),
	       daemon_pages_number(status, "leaked"));
	if (daemon_pages_number(status, "books_refused"))
		status_print_count(daemon_pages_number(status, "books_refused"), "book", "refused");
	if (daemon_pages_number(status, "unobserved_exits"))
		printf("         ended unobserved: %" PRIu64 "\n",
		       daemon_pages_number(status, "unobserved_exits"));
	status_print_past(json_object_get(status, "past"));
	status_print_flight(json_object_get(status, "flight"));
	status_print_doors(json_object_get(status, "doors"));
	printf("you see: %s\n",
	       json_is_true(json_object_get(status, "you_see_all"))
		       ? "the details of all processes"
		       : "the details of your own processes, totals of the others");
}

static int status_run(int argc, char **argv)
{
	CLEANUP(status_cleanup) struct daemon_client *remote = NULL;
	CLEANUP(daemon_pages_unload) json_t *status = NULL;
	CLEANUP_FREE char *text = NULL;
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
	r = daemon_client_get(remote, "/api/v1/status", &text, &length);
	if (r != 0 && json) {
		status_json_none(remote);
		(void)output_finish(); /* the exit code is 1 anyway */
		return COMMAND_FAILED;
	}
	if (r != 0)
		return daemon_pages_fail("status", remote, r);
	status = daemon_pages_load(text, length);
	if (json)
		fwrite(text, 1, length, stdout);
	else
		status_print(remote, status);
	return output_finish();
}

const struct command status_command = {
	.name = "status",
	.summary = "whether ttmemd runs, and its state",
	.run = status_run,
};
