/* SPDX-License-Identifier: Apache-2.0 */

/* One line per process: as many as fit on a screen, with what most of the memory was for. */

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/leaks/leaks.h"
#include "model/sites/site-rows.h"
#include "model/types.h"

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

void leaks_summary_begin(struct table *table, unsigned int width)
{
	table_begin(table, stdout, leaks_columns, ARRAY_SIZE(leaks_columns), width);
}

/* The largest call site: the name of its buffers, or else its line of code. */
static const char *leaks_summary_mostly(const struct leaks_row *leak, char *text, size_t size)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	const struct site_row *row = leak->sites;
	const char *name, *type;

	if (!leak->site_count)
		return "-";
	name = row->names.name;
	type = types_name(row->type);
	if (!name) {
		const struct site chosen = call_stack_site(row->stack.site);

		site_rows_add(&rows, &chosen);
		site_rows_finish(&rows);
		name = site_rows_text(&rows, 0);
	}
	snprintf(text, size, "%s %s", type ? type : "?", name);
	return text;
}

void leaks_summary_row(struct table *table, const struct leaks_row *leak, uint64_t now_ns)
{
	const struct ended_row *ended = &leak->ended;
	char number[TEXT_NUMBER_SIZE], how[ENDED_WORDS], mostly[2 * LEAKS_SUMMARY_PLACE];

	table_format(table, "%" PRIu32, ended->pid);
	table_text(table, ended->user ? ended->user : "?");
	table_text(table, ended->comm ? ended->comm : "?");
	table_format(table, "%s ago",
		     text_duration(bits_max(now_ns, ended->ended_ns) - ended->ended_ns, number));
	table_text(table, ended_words(ended, true, how));
	table_text(table, text_size(ended->bytes, number));
	if (leak->is_totals_only)
		table_text(table, "-");
	else
		table_format(table, "%" PRIu64, ended->buffers);
	table_text(table, leaks_summary_mostly(leak, mostly, sizeof(mostly)));
}
