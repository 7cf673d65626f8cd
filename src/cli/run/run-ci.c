/* SPDX-License-Identifier: Apache-2.0 */

/* Leaks for CI systems: as text in JUnit's file, and at their lines in GitHub's annotations. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-output.h"
#include "cli/run/run-report.h"
#include "model/sites/site.h"

#define CI_LEAKS 50u /* annotations and lines; GitHub shows ten, and --json has all */

/* "64.0 KiB leaked in 1 buffer: DRAM kv_cache at load (model.py:3)", fit for a terminal. */
static void ci_put_leak(const struct report_site *site, FILE *out)
{
	const struct group *group = report_group(site);
	char text[REPORT_KEY], size[TEXT_NUMBER_SIZE];

	fprintf(out, "%s leaked in %" PRIu64 " buffer%s: ", text_size(group->bytes, size),
		group->buffers, group->buffers == 1 ? "" : "s");
	text_put(out, group_label(group, text, sizeof(text)));
	site_text(site->stacks.groups[0].stack, text, sizeof(text));
	if (*text) {
		(void)fputs(" at ", out);
		text_put(out, text);
	}
}

char *report_leak_lines(const struct report *report)
{
	char *text = NULL;
	size_t length = 0, shown = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	for (size_t i = 0; i < report->site_count && shown < CI_LEAKS; i++) {
		if (report->sites[i].known)
			continue;
		if (shown++ > 0)
			(void)fputc('\n', out);
		ci_put_leak(&report->sites[i], out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void ci_annotate(const struct report_site *site, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&text, &length);
	CLEANUP(frames_deinit) struct frames frames = {0};
	struct frames_one frame;
	bool has_place;

	if (!memory)
		return;
	ci_put_leak(site, memory);
	has_place = site_find(&frames, site->stacks.groups[0].stack, &frame);
	if (fclose(memory) == 0)
		budget_put_annotation(has_place ? frame.file : NULL, has_place ? frame.line : 0,
				      text, out);
}

void report_github(const struct report *report, FILE *out)
{
	size_t shown = 0;

	for (size_t i = 0; i < report->site_count && shown < CI_LEAKS; i++) {
		if (report->sites[i].known)
			continue;
		ci_annotate(&report->sites[i], out);
		shown++;
	}
}
