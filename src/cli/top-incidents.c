/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's records, as the rows that "ttmem top" shows. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/ended.h"
#include "answers/incidents.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/top-command.h"
#include "model/types.h"
#include "source/daemon-client/daemon-client.h"
#include "tui/incident-rows.h"

#define TOP_PAGE 200u           /* rows of each kind, at most */
#define TOP_SITES 20u           /* call sites shown of a leak */
#define TOP_ENOUGH (-ECANCELED) /* stops the walk over pages */

struct top_walk {
	struct incident_rows *incident_rows;
	size_t rows;
};

static int top_leak_site(struct incident_rows *incident_rows, struct incident_rows_row *row,
			 const struct site_row *site)
{
	const char *type = types_name(site->type), *name = site->names.name, *phase = site->phase;
	char number[TEXT_NUMBER_SIZE];
	int r = incident_rows_line(incident_rows, row, "%s in %" PRIu64 " buffer%s of %s%s%s%s%s",
				   text_size(site->bytes, number), site->buffers,
				   site->buffers == 1 ? "" : "s", type ? type : "?",
				   name ? ", " : "", name ? name : "", phase ? ", in " : "",
				   phase ? phase : "");

	return r ? r : incident_rows_stack(incident_rows, row, &site->stack);
}

static int top_leak(struct incident_rows *incident_rows, const struct leaks_row *leak)
{
	char words[ENDED_WORDS];
	const struct incident_rows_row facts = {
		.time_ns = leak->ended.ended_ns,
		.kind = "leak",
		.pid = leak->ended.pid,
		.comm = leak->ended.comm,
		.bytes = leak->ended.bytes,
		.count = leak->ended.buffers,
		.what = ended_words(&leak->ended, false, words),
	};
	struct incident_rows_row *row = incident_rows_add(incident_rows, &facts);
	int r = 0;

	if (!row)
		return incident_rows->is_cut ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < leak->site_count && i < TOP_SITES; i++)
		r = top_leak_site(incident_rows, row, &leak->sites[i]);
	if (r == 0 && leak->site_count > TOP_SITES)
		r = incident_rows_line(incident_rows, row,
				       "and %zu more call sites, see \"ttmem leaks --json\"",
				       leak->site_count - TOP_SITES);
	return r;
}

/* After a row: whether another one is wanted. */
static int top_go_on(struct top_walk *walk, int r)
{
	walk->rows++;
	return r == 0 && walk->rows >= TOP_PAGE ? TOP_ENOUGH : r;
}

static int top_leak_row(void *context, const void *leak)
{
	struct top_walk *walk = context;

	return top_go_on(walk, top_leak(walk->incident_rows, leak));
}

static int top_incident_row(void *context, const void *incident)
{
	struct top_walk *walk = context;
	const struct incident_row *row = incident;

	/* Leaks are listed already, one row per process. */
	if (row->kind && strcmp(row->kind, "leak") == 0)
		return 0;
	return top_go_on(
		walk, incident_rows_incident(walk->incident_rows, row, clock_ns(CLOCK_REALTIME)));
}

static int top_walk(struct daemon_client *remote, struct incident_rows *incident_rows,
		    const struct daemon_pages_query *query, daemon_pages_row_fn *fn)
{
	struct top_walk walk = {.incident_rows = incident_rows};
	uint64_t hidden;
	int r = daemon_pages_each(remote, query, fn, &walk, &hidden);

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
	int r = top_walk(remote, incident_rows, &leaks, top_leak_row);

	return r ? r : top_walk(remote, incident_rows, &incidents, top_incident_row);
}
