/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's records, as the rows that "ttmem top" shows. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/top-command.h"
#include "model/sites/stack.h"
#include "source/daemon-client/daemon-client.h"
#include "tui/incident-rows.h"

#define TOP_PAGE 200u           /* rows of each kind, at most */
#define TOP_SITES 20u           /* call sites shown of a leak */
#define TOP_ENOUGH (-ECANCELED) /* stops the walk over pages */

struct top_walk {
	struct incident_rows *incident_rows;
	size_t rows;
};

static int top_stack(struct incident_rows *incident_rows, struct incident_rows_row *row,
		     const json_t *stack)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(stack); i++) {
		const json_t *frame = json_array_get(stack, i);
		const char *function = daemon_pages_text(frame, "function");
		const char *file = daemon_pages_text(frame, "file");

		if (file)
			r = incident_rows_line(incident_rows, row, "    at %s (%s:%" PRIu64 ")",
					       function ? function : "?", file,
					       daemon_pages_number(frame, "line"));
		else
			r = incident_rows_line(incident_rows, row, "    at %s",
					       function ? function : "?");
		if (r == 0 && json_is_true(json_object_get(frame, "cut")))
			r = incident_rows_line(incident_rows, row, "    at %s", FRAME_CUT_LINE);
	}
	return r;
}

static int top_leak_site(struct incident_rows *incident_rows, struct incident_rows_row *row,
			 const json_t *site)
{
	const char *type = daemon_pages_text(site, "type"), *name = daemon_pages_text(site, "name");
	const char *phase = daemon_pages_text(site, "phase");
	uint64_t count = daemon_pages_number(site, "buffers");
	char number[TEXT_NUMBER_SIZE];
	int r = incident_rows_line(incident_rows, row, "%s in %" PRIu64 " buffer%s of %s%s%s%s%s",
				   text_size(daemon_pages_number(site, "bytes"), number), count,
				   count == 1 ? "" : "s", type ? type : "?", name ? ", " : "",
				   name ? name : "", phase ? ", in " : "", phase ? phase : "");

	return r ? r : top_stack(incident_rows, row, json_object_get(site, "stack"));
}

/* "killed by signal 9 (SIGKILL)"; @text has room for 64 bytes. */
static void top_end(const json_t *process, char *text)
{
	const json_t *exit = json_object_get(process, "exit");
	const char *how = daemon_pages_text(process, "how"),
		   *name = daemon_pages_text(exit, "name");

	if (json_is_number(json_object_get(exit, "signal")))
		snprintf(text, 64, "killed by signal %" PRIu64 "%s%s%s",
			 daemon_pages_number(exit, "signal"), name ? " (" : "", name ? name : "",
			 name ? ")" : "");
	else if (json_is_number(json_object_get(exit, "code")))
		snprintf(text, 64, "exit code %" PRIu64, daemon_pages_number(exit, "code"));
	else
		snprintf(text, 64, "%s",
			 how && strcmp(how, "closed") == 0 ? "ended in order" : "died");
}

static int top_leak(void *context, const json_t *process)
{
	struct top_walk *walk = context;
	const json_t *sites = json_object_get(process, "sites");
	char end[64];
	struct incident_rows_row facts = {
		.time_ns = daemon_pages_number(process, "ended_ns"),
		.kind = "leak",
		.pid = (uint32_t)daemon_pages_number(process, "pid"),
		.comm = daemon_pages_text(process, "comm"),
		.bytes = daemon_pages_number(process, "bytes"),
		.count = daemon_pages_number(process, "buffer_count"),
		.what = end,
	};
	struct incident_rows_row *row;
	int r = 0;

	top_end(process, end);
	row = incident_rows_add(walk->incident_rows, &facts);
	if (!row)
		return walk->incident_rows->is_cut ? TOP_ENOUGH : -ENOMEM;
	for (size_t i = 0; r == 0 && i < json_array_size(sites) && i < TOP_SITES; i++)
		r = top_leak_site(walk->incident_rows, row, json_array_get(sites, i));
	if (r == 0 && json_array_size(sites) > TOP_SITES)
		r = incident_rows_line(walk->incident_rows, row,
				       "and %zu more call sites, see \"ttmem leaks --json\"",
				       json_array_size(sites) - TOP_SITES);
	walk->rows++;
	return r == 0 && walk->rows >= TOP_PAGE ? TOP_ENOUGH : r;
}

static int top_party(struct incident_rows *incident_rows, struct incident_rows_row *row,
		     const char *when, const json_t *party)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), then = daemon_pages_number(party, "time_ns");
	uint64_t size = daemon_pages_number(party, "size");
	const char *name = daemon_pages_text(party, "name"),
		   *phase = daemon_pages_text(party, "phase");
	char ago[TEXT_NUMBER_SIZE], bytes[TEXT_NUMBER_SIZE];
	int r;

	if (!json_is_object(party))
		return 0;
	r = incident_rows_line(incident_rows, row, "%s%s ago by thread %" PRIu64 "%s%s%s%s%s%s",
			       when, text_duration(now > then ? now - then : 0, ago),
			       daemon_pages_number(party, "thread"), size ? ", " : "",
			       size ? text_size(size, bytes) : "", name ? ", " : "",
			       name ? name : "", phase ? ", in " : "", phase ? phase : "");
	return r ? r : top_stack(incident_rows, row, json_object_get(party, "stack"));
}

static int top_holders(struct incident_rows *incident_rows, struct incident_rows_row *row,
		       const json_t *holders)
{
	char number[TEXT_NUMBER_SIZE];
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(holders); i++) {
		const json_t *holder = json_array_get(holders, i);
		const char *comm = daemon_pages_text(holder, "comm"),
			   *type = daemon_pages_text(holder, "type");

		r = incident_rows_line(incident_rows, row, "held by %s (%" PRIu64 "): %s of %s",
				       comm ? comm : "?", daemon_pages_number(holder, "pid"),
				       text_size(daemon_pages_number(holder, "used"), number),
				       type ? type : "?");
	}
	return r;
}

/* A row has only the newest device. */
static int top_devices(struct incident_rows *incident_rows, struct incident_rows_row *row,
		       const json_t *devices)
{
	CLEANUP_FREE char *text =
		json_array_size(devices) > 1 ? json_dumps(devices, JSON_COMPACT) : NULL;

	if (!text)
		return 0;
	text[strlen(text) - 1] = '\0';
	return incident_rows_line(incident_rows, row, "devices: %s", text + 1);
}

/* What happened first, what happened then, and who held the memory. */
static int top_incident_lines(struct incident_rows *incident_rows, struct incident_rows_row *row,
			      const json_t *incident)
{
	const json_t *first = json_object_get(incident, "first");
	char number[TEXT_NUMBER_SIZE];
	int r = 0;

	if (json_is_number(json_object_get(incident, "largest_free")))
		r = incident_rows_line(
			incident_rows, row, "largest free block: %s",
			text_size(daemon_pages_number(incident, "largest_free"), number));
	if (r == 0)
		r = top_devices(incident_rows, row, json_object_get(incident, "devices"));
	if (r == 0)
		r = top_party(incident_rows, row, "first ", first);
	if (r == 0)
		r = top_party(incident_rows, row, json_is_object(first) ? "then  " : "",
			      json_object_get(incident, "second"));
	return r ? r : top_holders(incident_rows, row, json_object_get(incident, "holders"));
}

static int top_incident(void *context, const json_t *incident)
{
	struct top_walk *walk = context;
	const json_t *first = json_object_get(incident, "first");
	const json_t *second = json_object_get(incident, "second");
	const char *kind = daemon_pages_text(incident, "kind");
	const char *address = daemon_pages_text(incident, "address");
	struct incident_rows_row facts = {
		.time_ns = daemon_pages_number(incident, "time_ns"),
		.kind = kind,
		.pid = (uint32_t)daemon_pages_number(incident, "pid"),
		.comm = daemon_pages_text(incident, "comm"),
		.has_device = json_is_number(json_object_get(incident, "device")),
		.device = (uint32_t)daemon_pages_number(incident, "device"),
		.type = daemon_pages_text(incident, "type"),
		.bytes = daemon_pages_number(incident, "size"),
		.count = daemon_pages_number(incident, "count"),
		.what = daemon_pages_text(first, "name"),
	};
	struct incident_rows_row *row;
	int r;

	/* Leaks are listed already, one row per process. */
	if (kind && strcmp(kind, "leak") == 0)
		return 0;
	if (!facts.what)
		facts.what = daemon_pages_text(second, "name");
	if (!facts.what)
		facts.what = daemon_pages_text(second, "phase");
	facts.has_address = address && text_parse_u64(address, &facts.address) == 0;
	row = incident_rows_add(walk->incident_rows, &facts);
	if (!row)
		return walk->incident_rows->is_cut ? TOP_ENOUGH : -ENOMEM;
	r = top_incident_lines(walk->incident_rows, row, incident);
	walk->rows++;
	return r == 0 && walk->rows >= TOP_PAGE ? TOP_ENOUGH : r;
}

static int top_walk(struct daemon_client *remote, struct incident_rows *incident_rows,
		    const struct daemon_pages_query *query, daemon_pages_fn *fn)
{
	struct top_walk walk = {.incident_rows = incident_rows};
	uint64_t hidden;
	int r = daemon_pages_rows(remote, query, fn, &walk, &hidden);

	incident_rows->hidden = hidden; /* the incidents', asked for last, have the leaks in it */
	if (r != TOP_ENOUGH)
		return r;
	incident_rows->is_cut = true;
	return 0;
}

int top_past(struct daemon_client *remote, struct incident_rows *incident_rows)
{
	static const struct daemon_pages_query leaks = {.answer = &answers[ANSWERS_LEAKS],
							.query.given = QUERY_BUFFERS};
	static const struct daemon_pages_query incidents = {.answer = &answers[ANSWERS_INCIDENTS]};
	int r = top_walk(remote, incident_rows, &leaks, top_leak);

	return r ? r : top_walk(remote, incident_rows, &incidents, top_incident);
}
