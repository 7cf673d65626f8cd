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
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/diff/diff.h"
#include "model/sites/site-rows.h"
#include "model/types.h"

#define DIFF_SHOWN 20u /* rows shown to people; scripts get all */

#define DIFF_RED "\033[31m"
#define DIFF_GREEN "\033[32m"
#define DIFF_PLAIN "\033[0m"

#define DIFF_CELL 14
#define DIFF_TYPE 16u /* columns of the type, with its blanks */
#define DIFF_KEY 512u /* columns of a key at most, and at least */
#define DIFF_KEY_LEAST 20u

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

/* Right-aligned, with its sign; a blank cell if nothing has changed. */
static void diff_put_change(const struct summary_change *change, enum summary_value value)
{
	int64_t by = summary_change(change, value);
	char amount[TEXT_NUMBER_SIZE], cell[TEXT_NUMBER_SIZE + 1];
	bool is_coloured = by != 0 && output_has_colours();

	diff_amount(value, by < 0 ? -(uint64_t)by : (uint64_t)by, amount);
	(void)snprintf(cell, sizeof(cell), "%s%s", by < 0 ? "-" : by > 0 ? "+" : "", amount);
	printf("%s%*s%s", is_coloured ? by > 0 ? DIFF_RED : DIFF_GREEN : "", DIFF_CELL,
	       by == 0 ? "=" : cell, is_coloured ? DIFF_PLAIN : "");
}

static void diff_put_percent(const struct summary_change *change, enum summary_value value)
{
	double before = (double)change->before[value];

	if (before > 0)
		printf("  %+8.1f %%", 100 * ((double)change->after[value] / before - 1));
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

static void diff_text_total(const struct summary_change *change, enum summary_value value)
{
	char before[TEXT_NUMBER_SIZE], after[TEXT_NUMBER_SIZE];

	printf("  device %-4" PRIu32 " %-13s %-11s %*s %*s ", change->device,
	       types_name(change->type), diff_value_name(value), DIFF_CELL - 2,
	       diff_amount(value, change->before[value], before), DIFF_CELL - 2,
	       diff_amount(value, change->after[value], after));
	diff_put_change(change, value);
	diff_put_percent(change, value);
	putchar('\n');
}

static size_t diff_text_totals(const struct summary_changes *totals)
{
	size_t shown = 0;

	for (size_t i = 0; i < totals->count; i++) {
		for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
			const struct summary_change *change = &totals->list[i];

			if (!(totals->known >> value & 1) ||
			    change->before[value] == change->after[value])
				continue;
			if (shown++ == 0)
				printf("\n  %-38s %*s %*s %*s\n", "", DIFF_CELL - 2, "before",
				       DIFF_CELL - 2, "after", DIFF_CELL, "change");
			diff_text_total(change, value);
		}
	}
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

/* Its line of code (@site: "" = none), then all calls. A terminal gets one line, other programs get all of it. */
static void diff_put_key(const struct summary_change *change, const char *site, unsigned int from)
{
	char text[DIFF_KEY + SUMMARY_KEY], fitted[TEXT_ESCAPE_SIZE(DIFF_KEY)];
	unsigned int width = output_width();

	(void)snprintf(text, sizeof(text), "%s%s%s", site, *site ? "  " : "", change->key);
	if (width == 0) {
		text_put(stdout, text);
		return;
	}
	text_fit(text, bits_min(bits_max(width, from + DIFF_KEY_LEAST) - from, DIFF_KEY), fitted,
		 sizeof(fitted));
	(void)fputs(fitted, stdout);
}

static void diff_text_row(const struct diff *diff, const struct summary_change *change,
			  const char *site)
{
	const struct summary_changes *rows = &diff->rows;
	unsigned int columns = 0;

	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (!diff_text_has(rows, value))
			continue;
		diff_put_change(change, value);
		columns += DIFF_CELL;
	}
	printf("  %-13s ", types_name(change->type));
	if (change->key)
		diff_put_key(change, site, columns + DIFF_TYPE);
	else
		printf("(no %s)", diff_text_title(diff->sides[0].summary.kind));
	putchar('\n');
}

static void diff_text_rows(const struct diff *diff, bool with_all)
{
	CLEANUP(site_rows_deinit) struct site_rows sites = SITE_ROWS_NULL;
	const struct summary_changes *rows = &diff->rows;
	size_t shown = with_all ? rows->count : bits_min(rows->count, DIFF_SHOWN);

	if (rows->count == 0)
		return;
	putchar('\n');
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (diff_text_has(rows, value))
			printf("%*s", DIFF_CELL, diff_value_name(value));
	}
	printf("  %-13s %s\n", "type", diff_text_title(diff->sides[0].summary.kind));
	for (size_t i = 0; i < shown; i++)
		site_rows_add(&sites, rows->list[i].site ? rows->list[i].site : &SITE_NULL);
	site_rows_finish(&sites);
	for (size_t i = 0; i < shown; i++)
		diff_text_row(diff, &rows->list[i], site_rows_text(&sites, i));
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
