/* SPDX-License-Identifier: Apache-2.0 */

/* One line per process: as many as fit on a screen, with what most of the memory was for. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/site-json.h"
#include "cli/leaks/leaks.h"
#include "model/sites/site-rows.h"

#define LEAKS_SUMMARY_PLACE 512u /* more does not fit on a line */

/* What most of it was for is what people look for. */
static const struct table_column leaks_columns[] = {
	{"PID", true},
	{"USER", .cut = true, .order = 1},
	{"COMMAND", .cut = true, .least = 11},
	{"ENDED"},
	{"HOW", .cut = true, .least = 9},
	{"LEFT", true},
	{"BUFFERS", true, .order = 2},
	{"MOSTLY", .cut = true, .least = 40},
};

const char *leaks_how(const json_t *process, char ret_text[LEAKS_HOW_SIZE])
{
	const json_t *exit = json_object_get(process, "exit");
	const char *how = daemon_pages_text(process, "how"),
		   *name = daemon_pages_text(exit, "name");

	if (json_is_number(json_object_get(exit, "signal")) && name)
		snprintf(ret_text, LEAKS_HOW_SIZE, "%s", name);
	else if (json_is_number(json_object_get(exit, "signal")))
		snprintf(ret_text, LEAKS_HOW_SIZE, "signal %" PRIu64,
			 daemon_pages_number(exit, "signal"));
	else if (json_is_number(json_object_get(exit, "code")))
		snprintf(ret_text, LEAKS_HOW_SIZE, "exit %" PRIu64,
			 daemon_pages_number(exit, "code"));
	else if (json_is_true(json_object_get(process, "exec")))
		snprintf(ret_text, LEAKS_HOW_SIZE, "exec");
	else
		snprintf(ret_text, LEAKS_HOW_SIZE, "%s",
			 how && strcmp(how, "closed") == 0 ? "in order" : "died");
	return ret_text;
}

void leaks_summary_begin(struct table *table, unsigned int width)
{
	table_begin(table, stdout, leaks_columns, ARRAY_SIZE(leaks_columns), width);
}

/* The largest call site: the name of its buffers, or else its line of code. */
static const char *leaks_summary_mostly(const json_t *process, char *text, size_t size)
{
	const json_t *site = json_array_get(json_object_get(process, "sites"), 0);
	const json_t *place = json_object_get(site, "site");
	const char *name = daemon_pages_text(site, "name");
	const char *type = daemon_pages_text(site, "type");
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;

	if (!name && json_is_object(place)) {
		const struct site chosen = site_json_read(place);

		site_rows_add(&rows, &chosen);
		site_rows_finish(&rows);
		name = site_rows_text(&rows, 0);
	}
	if (!site)
		return "-";
	snprintf(text, size, "%s %s", type ? type : "?", name ? name : "");
	return text;
}

void leaks_summary_row(struct table *table, const json_t *process, uint64_t now_ns)
{
	uint64_t ended = daemon_pages_number(process, "ended_ns");
	const char *comm = daemon_pages_text(process, "comm"),
		   *user = daemon_pages_text(process, "user");
	char number[TEXT_NUMBER_SIZE], how[LEAKS_HOW_SIZE], mostly[2 * LEAKS_SUMMARY_PLACE];

	table_format(table, "%" PRIu64, daemon_pages_number(process, "pid"));
	table_text(table, user ? user : "?");
	table_text(table, comm ? comm : "?");
	table_format(table, "%s ago", text_duration(now_ns > ended ? now_ns - ended : 0, number));
	table_text(table, leaks_how(process, how));
	table_text(table, text_size(daemon_pages_number(process, "bytes"), number));
	if (json_is_false(json_object_get(process, "buffers_known")))
		table_text(table, "-");
	else
		table_format(table, "%" PRIu64, daemon_pages_number(process, "buffer_count"));
	table_text(table, leaks_summary_mostly(process, mostly, sizeof(mostly)));
}
