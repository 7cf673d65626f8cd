/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The differences for people: a line for each total that has changed, then the rows. Growth is red and
 * the rest green, where there are colours; signs say the same.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/diff/diff.h"
#include "model/sites/site-rows.h"
#include "model/types.h"

#define DIFF_SHOWN 20u /* rows shown to people; scripts get all */

#define DIFF_RED 1
#define DIFF_GREEN 2

#define DIFF_KEY 512u /* columns of a line of code */

static bool diff_is_bytes(enum summary_value value)
{
	return value == SUMMARY_PEAK || value == SUMMARY_END;
}

static const char *diff_amount(enum summary_value value, uint64_t amount, char *ret_text)
{
	if (diff_is_bytes(value))
		return text_size(amount, ret_text);
	(void)snprintf(ret_text, TEXT_NUMBER_SIZE, "%" PRIu64, amount);
	return ret_text;
}

/* With its sign; "=" if nothing has changed. */
static void diff_put_change(struct table *table, const struct summary_change *change,
			    enum summary_value value)
{
	int64_t by = change->values[value].change;
	char amount[TEXT_NUMBER_SIZE];

	diff_amount(value, by < 0 ? -(uint64_t)by : (uint64_t)by, amount);
	if (by != 0 && output_has_colours())
		table->colour = by > 0 ? DIFF_RED : DIFF_GREEN;
	if (by == 0)
		table_text(table, "=");
	else
		table_format(table, "%s%s", by < 0 ? "-" : "+", amount);
}

static void diff_text_side(const struct diff_side *side, const char *title)
{
	printf("%-7s", title);
	text_put(stdout, side->file);
	if (side->at) {
		printf(" at ");
		text_put(stdout, side->at);
	}
	if (side->command && *side->command) {
		printf(": ");
		text_put(stdout, side->command);
	}
	printf("%s\n", side->is_tracked ? "" : " (nothing was tracked)");
}

static void diff_text_total(struct table *table, const struct summary_change *change,
			    enum summary_value value)
{
	const struct summary_amount *amounts = &change->values[value];
	double was = (double)amounts->before;
	char amount[TEXT_NUMBER_SIZE];

	table_format(table, "device %" PRIu32, change->device);
	table_text(table, types_name(change->type));
	table_text(table, diff_value_name(value));
	table_text(table, diff_amount(value, amounts->before, amount));
	table_text(table, diff_amount(value, amounts->after, amount));
	diff_put_change(table, change, value);
	if (was > 0)
		table_format(table, "%+.1f %%", 100 * ((double)amounts->after / was - 1));
	else
		table_text(table, "");
}

static size_t diff_text_totals(const struct summary_changes *totals)
{
	static const struct table_column columns[] = {
		{""}, {""}, {""}, {"before", true}, {"after", true}, {"change", true}, {"", true},
	};
	struct table table;
	size_t shown = 0;

	for (size_t i = 0; i < totals->count; i++) {
		for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
			const struct summary_change *change = &totals->list[i];

			if (!change->values[value].is_known || !change->values[value].change)
				continue;
			if (shown++ == 0) {
				putchar('\n');
				table_begin(&table, stdout, columns, ARRAY_SIZE(columns),
					    output_width());
			}
			diff_text_total(&table, change, value);
		}
	}
	if (shown)
		table_end(&table);
	return shown;
}

/* What a row is called, and its column. */
static const char *diff_text_title(enum group_kind kind)
{
	if (kind == GROUP_PHASE)
		return "phase";
	return kind == GROUP_NAME ? "name" : "call site";
}

/* Whether rows have a column for it. Frees are what allocations and buffers say already. */
static bool diff_text_has(const struct summary_changes *rows, enum summary_value value)
{
	return rows->known >> value & 1 && value != SUMMARY_FREES;
}

/* @site: its line of code; "" = none. */
static void diff_text_row(struct table *table, const struct diff *diff,
			  const struct summary_change *change, const char *site)
{
	char text[DIFF_KEY + SUMMARY_KEY];

	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (diff_text_has(&diff->rows, value))
			diff_put_change(table, change, value);
	}
	table_text(table, types_name(change->type));
	if (change->key)
		(void)snprintf(text, sizeof(text), "%s%s%s", site, *site ? "  " : "", change->key);
	else
		(void)snprintf(text, sizeof(text), "(no %s)",
			       diff_text_title(diff->sides[0].summary.kind));
	table_text(table, text);
}

static void diff_text_rows(const struct diff *diff, bool with_all)
{
	CLEANUP(site_rows_deinit) struct site_rows sites = SITE_ROWS_NULL;
	const struct summary_changes *rows = &diff->rows;
	size_t shown = with_all ? rows->count : bits_min(rows->count, DIFF_SHOWN), count = 0;
	struct table_column columns[SUMMARY_VALUES + 2];
	struct table table;

	if (rows->count == 0)
		return;
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (diff_text_has(rows, value))
			columns[count++] =
				(struct table_column){diff_value_name(value), .right = true};
	}
	columns[count++] = (struct table_column){"type"};
	columns[count++] =
		(struct table_column){diff_text_title(diff->sides[0].summary.kind), .cut = true,
				      .below = true, .order = 1, .least = 40};
	putchar('\n');
	table_begin(&table, stdout, columns, count, output_width());
	for (size_t i = 0; i < shown; i++)
		site_rows_add(&sites, rows->list[i].site ? rows->list[i].site : &SITE_NULL);
	site_rows_finish(&sites);
	for (size_t i = 0; i < shown; i++)
		diff_text_row(&table, diff, &rows->list[i], site_rows_text(&sites, i));
	table_end(&table);
	if (shown < rows->count)
		printf("and %zu more (--all)\n", rows->count - shown);
	session_find_tip(&sites);
	session_print_tip(stdout);
}

void diff_text(const struct diff *diff, bool with_all)
{
	size_t totals;

	diff_text_side(&diff->sides[0], "before");
	diff_text_side(&diff->sides[1], "after");
	totals = diff_text_totals(&diff->totals);
	diff_text_rows(diff, with_all);
	if (totals == 0 && diff->rows.count == 0)
		printf("\nno difference\n");
	if (!diff->sides[0].is_exact || !diff->sides[1].is_exact)
		printf("\nnot all figures are exact: some are lower bounds\n");
	if (*diff->note) {
		fflush(stdout);
		fprintf(stderr, "note: %s\n", diff->note);
	}
}
