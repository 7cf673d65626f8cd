/* SPDX-License-Identifier: Apache-2.0 */

/* Leaks for CI systems: as text in JUnit's file, and at their lines in GitHub's annotations. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-output.h"
#include "cli/run/run-report.h"
#include "model/sites/site-rows.h"

#define CI_LEAKS 50u /* annotations and lines; GitHub shows ten, and --json has all */

/* "64.0 KiB leaked in 1 buffer: DRAM kv_cache at load (model.py:3)", fit for a terminal. */
static void ci_put_leak(const struct report_site *site, const char *place, FILE *out)
{
	const struct call_site *group = report_group(site);
	char text[REPORT_KEY], size[TEXT_NUMBER_SIZE];

	fprintf(out, "%s leaked in %" PRIu64 " buffer%s: ", text_size(group->bytes, size),
		group->buffers, group->buffers == 1 ? "" : "s");
	text_put(out, call_site_label(group, text, sizeof(text)));
	if (*place) {
		(void)fputs(" at ", out);
		text_put(out, place);
	}
}

char *report_leak_lines(const struct report *report)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	char *text = NULL;
	size_t length = 0, shown = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	report_rows(report, &rows);
	for (size_t i = 0; i < report->site_count && shown < CI_LEAKS; i++) {
		if (report->sites[i].known)
			continue;
		if (shown++ > 0)
			(void)fputc('\n', out);
		ci_put_leak(&report->sites[i], site_rows_text(&rows, i), out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void ci_annotate(const struct report *report, const struct site_rows *rows, size_t index,
			FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&text, &length);
	const struct frame *place = site_rows_place(rows, index);

	if (!memory)
		return;
	ci_put_leak(&report->sites[index], site_rows_text(rows, index), memory);
	if (fclose(memory) == 0)
		budget_put_annotation(place ? place->file : NULL, place ? place->line : 0, text,
				      out);
}

void report_github(const struct report *report, FILE *out)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	size_t shown = 0;

	report_rows(report, &rows);
	for (size_t i = 0; i < report->site_count && shown < CI_LEAKS; i++) {
		if (report->sites[i].known)
			continue;
		ci_annotate(report, &rows, i, out);
		shown++;
	}
}
