/* SPDX-License-Identifier: Apache-2.0 */

/* The rows made of the records of a fake daemon. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/top-command.h"
#include "model/sites/stack.h"
#include "source/daemon-client/daemon-client.h"
#include "source/daemon-client/testing/daemon-client-testing.h"
#include "tui/incident-rows.h"

static const char cut_line[] = "    at " FRAME_CUT_LINE;

static const char *leaks, *incidents; /* rows of the two documents */
static unsigned int sites;            /* of the first leak, in addition */
static unsigned int copies = 1;       /* of each row */

static void serve(int fd, const void *packet, size_t length)
{
	static char body[60000], text[60100];
	bool is_leaks = memmem(packet, length, "/api/v1/leaks?", 14);
	const char *rows = is_leaks ? leaks : incidents;
	size_t used = (size_t)snprintf(body, sizeof(body), "{\"%s\":[",
				       is_leaks ? "processes" : "incidents");

	for (unsigned int i = 0; rows && i < copies; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used, "%s%s", i ? "," : "",
					 rows);
	if (is_leaks && sites)
		used += (size_t)snprintf(body + used, sizeof(body) - used, "{\"sites\":[");
	for (unsigned int i = 0; is_leaks && i < sites; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used,
					 "%s{\"bytes\":1,\"buffers\":1,\"type\":\"L1\"}",
					 i ? "," : "");
	if (is_leaks && sites)
		used += (size_t)snprintf(body + used, sizeof(body) - used, "]}");
	(void)snprintf(body + used, sizeof(body) - used, "],\"next\":null,\"notes\":[]}");
	(void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
	daemon_client_testing_send(fd, text);
}

static struct incident_rows *ask(void)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve);
	struct incident_rows *rows = incident_rows_new();
	struct daemon_client *remote;

	assert(rows && daemon_client_new(&remote) == 0);
	assert(top_past(remote, rows) == 0);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
	return rows;
}

/* Whether a row has exactly the @count lines. */
static bool has_lines(const struct incident_rows_row *row, const char *const *lines, size_t count)
{
	for (size_t i = 0; i < row->line_count && i < count; i++) {
		if (strcmp(row->lines[i], lines[i]) != 0)
			return false;
	}
	return row->line_count == count;
}

#define HAS_LINES(row, ...)                                \
	has_lines(row, (const char *const[]){__VA_ARGS__}, \
		  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

UNIT(a_leak_has_its_call_sites_below)
{
	struct incident_rows *rows;

	leaks = "{\"pid\":7,\"comm\":\"train\",\"ended_ns\":5,\"bytes\":3072,\"buffer_count\":3,"
		"\"how\":\"closed\",\"sites\":["
		"{\"type\":\"DRAM\",\"bytes\":2048,\"buffers\":2,\"name\":\"kv\",\"phase\":"
		"\"load\","
		"\"stack\":[{\"function\":\"f\",\"file\":\"a.py\",\"line\":3},"
		"{\"file\":\"b.py\",\"line\":4},{\"function\":\"g\",\"cut\":true},{}]},"
		"{\"bytes\":1024,\"buffers\":1}]}";
	rows = ask();
	assert(rows->count == 1 && !rows->is_cut && rows->hidden == 0);
	assert(rows->rows[0].pid == 7 && strcmp(rows->rows[0].comm, "train") == 0);
	assert(rows->rows[0].time_ns == 5 && rows->rows[0].bytes == 3072);
	assert(rows->rows[0].count == 3 && strcmp(rows->rows[0].kind, "leak") == 0);
	assert(strcmp(rows->rows[0].what, "ended in order") == 0);
	assert(HAS_LINES(&rows->rows[0], "2.0 KiB in 2 buffers of DRAM, kv, in load",
			 "    at f (a.py:3)", "    at ? (b.py:4)", "    at g", cut_line, "    at ?",
			 "1.0 KiB in 1 buffer of ?"));
	incident_rows_free(rows);
}

UNIT(how_a_process_has_ended)
{
	static const char *const ends[] = {"killed by signal 9 (SIGKILL)",
					   "killed by signal 40",
					   "exit code 0",
					   "died",
					   "died",
					   "became another program"};
	struct incident_rows *rows;

	leaks = "{\"exit\":{\"signal\":9,\"name\":\"SIGKILL\"}},{\"exit\":{\"signal\":40}},"
		"{\"exit\":{\"code\":0}},{\"how\":\"gone\"},{},{\"exec\":true}";
	rows = ask();
	assert(rows->count == 6);
	for (size_t i = 0; i < 6; i++)
		assert(strcmp(rows->rows[i].what, ends[i]) == 0);
	incident_rows_free(rows);
}

UNIT(twenty_call_sites_of_a_leak_are_shown)
{
	struct incident_rows *rows;

	sites = 20;
	rows = ask();
	assert(rows->count == 1 && rows->rows[0].line_count == 20);
	assert(strcmp(rows->rows[0].lines[19], "1 B in 1 buffer of L1") == 0);
	incident_rows_free(rows);
	sites = 22;
	rows = ask();
	assert(rows->rows[0].line_count == 21);
	assert(strcmp(rows->rows[0].lines[20],
		      "and 2 more call sites, see \"ttmem leaks --json\"") == 0);
	incident_rows_free(rows);
}

UNIT(an_incident_names_both_parties_and_the_holders)
{
	struct incident_rows *rows;

	incidents = "{\"kind\":\"leak\",\"pid\":1},"
		    "{\"kind\":\"double_free\",\"pid\":2,\"device\":0,\"address\":\"0x40\","
		    "\"type\":\"L1\",\"size\":64,\"count\":3,\"largest_free\":1024,\"time_ns\":9,"
		    "\"devices\":[1,2],"
		    "\"first\":{\"thread\":11,\"time_ns\":9223372036854775807,\"size\":64,"
		    "\"name\":\"a\",\"phase\":\"p\",\"stack\":[{\"function\":\"f\"}]},"
		    "\"second\":{\"thread\":12,\"time_ns\":9223372036854775807,\"name\":\"b\"},"
		    "\"holders\":[{\"comm\":\"x\",\"pid\":5,\"used\":1024,\"type\":\"L1\"},{}]}";
	rows = ask();
	assert(rows->count == 1 && !rows->is_cut);
	assert(rows->rows[0].pid == 2 && rows->rows[0].has_device && rows->rows[0].device == 0);
	assert(rows->rows[0].has_address && rows->rows[0].address == 0x40);
	assert(rows->rows[0].bytes == 64 && rows->rows[0].count == 3 && rows->rows[0].time_ns == 9);
	assert(strcmp(rows->rows[0].what, "a") == 0 && strcmp(rows->rows[0].type, "L1") == 0);
	assert(HAS_LINES(&rows->rows[0], "largest free block: 1.0 KiB", "devices: 1,2",
			 "first 0 ms ago by thread 11, 64 B, a, in p", "    at f",
			 "then  0 ms ago by thread 12, b", "held by x (5): 1.0 KiB of L1",
			 "held by ? (0): 0 B of ?"));
	incident_rows_free(rows);
}

UNIT(what_an_incident_does_not_say_is_left_out)
{
	struct incident_rows *rows;

	incidents = "{\"kind\":\"a\",\"devices\":[1],\"second\":{\"thread\":12,\"phase\":\"p\","
		    "\"time_ns\":9223372036854775807}},"
		    "{\"kind\":\"b\",\"second\":{\"name\":\"n\",\"phase\":\"p\","
		    "\"time_ns\":9223372036854775807}},"
		    "{\"address\":\"none\"}";
	rows = ask();
	assert(rows->count == 3);
	assert(!rows->rows[0].has_address);
	assert(strcmp(rows->rows[0].what, "p") == 0 && strcmp(rows->rows[1].what, "n") == 0);
	assert(HAS_LINES(&rows->rows[0], "0 ms ago by thread 12, in p"));
	assert(HAS_LINES(&rows->rows[1], "0 ms ago by thread 0, n, in p"));
	assert(!rows->rows[2].has_address && !rows->rows[2].what && rows->rows[2].line_count == 0);
	incident_rows_free(rows);
}

/* Of each kind; whoever wants more asks the daemon. */
UNIT(two_hundred_rows_of_each_kind_are_shown)
{
	struct incident_rows *rows;

	leaks = "{}";
	incidents = "{\"kind\":\"a\"}";
	copies = 199;
	rows = ask();
	assert(rows->count == 398 && !rows->is_cut);
	incident_rows_free(rows);
	copies = 201;
	rows = ask();
	assert(rows->count == 400 && rows->is_cut);
	incident_rows_free(rows);
}
