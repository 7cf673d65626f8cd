/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A report of `ttmem run --json` as a summary: peaks are the report's, and what was there at the end
 * is added up from the buffers of its processes.
 */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/must.h"
#include "cli/common/run-report.h"
#include "cli/common/site-json.h"
#include "cli/diff/diff.h"
#include "model/sites/stack.h"

/* The row of what was live at a peak and freed too long ago, or held by another process. */
#define DIFF_NOT_KNOWN "(not known)"

static int diff_run_add_buffer(struct diff_side *side, const json_t *buffer)
{
	struct summary_buffer about = {
		.stack = site_json_stack(&side->summary.texts, json_object_get(buffer, "stack")),
		.name = daemon_pages_text(buffer, "name"),
		.phase = daemon_pages_text(buffer, "phase"),
	};
	uint64_t size = daemon_pages_number(buffer, "size");
	struct summary_name name;
	uint32_t device, type;
	int r = run_report_place(buffer, &device, &type);

	if (r < 0)
		return r;
	side->has_stacks |= about.stack != NULL;
	summary_name_init(&name, &side->summary, &about);
	summary_add_total(&side->summary, device, type, SUMMARY_END, size);
	summary_add_total(&side->summary, device, type, SUMMARY_BUFFERS, 1);
	summary_add_row(&side->summary, type, &name, SUMMARY_END, size);
	summary_add_row(&side->summary, type, &name, SUMMARY_BUFFERS, 1);
	return 0;
}

static int diff_run_add_processes(struct diff_side *side, const json_t *processes)
{
	const uint32_t known = 1u << SUMMARY_END | 1u << SUMMARY_BUFFERS;
	int r = 0;

	side->summary.totals.known |= known;
	side->summary.rows.known |= known;
	for (size_t i = 0; r == 0 && i < json_array_size(processes); i++) {
		const json_t *process = json_array_get(processes, i);
		const json_t *buffers = json_object_get(process, "buffers");

		side->is_exact &= !json_is_false(json_object_get(process, "exact"));
		for (size_t k = 0; r == 0 && k < json_array_size(buffers); k++)
			r = diff_run_add_buffer(side, json_array_get(buffers, k));
	}
	return r;
}

/*
 * What a group of buffers is called: its calls. Older reports have only a key for people: "TYPE: "
 * comes before its stack, in which allocators are not told apart. Without a stack the first name or
 * phase counts.
 */
static void diff_run_group_name(struct summary_name *name, struct diff_side *side,
				const json_t *group)
{
	const json_t *first = json_array_get(json_object_get(group, "names"), 0);
	const json_t *site = json_object_get(group, "site");
	const char *text = daemon_pages_text(group, "key");
	const char *calls = daemon_pages_text(group, "calls");
	const char *line = text && json_is_object(site) ? strstr(text, ": ") : NULL;
	struct summary_buffer about = {
		.name = daemon_pages_text(first, "name"),
		.phase = daemon_pages_text(first, "phase"),
	};

	if (line)
		about.stack = stack_parse(&side->summary.texts, line + 2);
	summary_name_init(name, &side->summary, &about);
	if (line && calls && *calls)
		name->key = calls;
	if (line)
		name->site = site_json_read(site);
}

static void diff_run_add_group(struct diff_side *side, const json_t *group, uint32_t type,
			       uint64_t bytes)
{
	struct summary_name name;

	diff_run_group_name(&name, side, group);
	summary_add_row(&side->summary, type, &name, SUMMARY_PEAK, bytes);
}

/* What was live at a peak, by call site; what is not known has a row, too. */
static void diff_run_add_at_peak(struct diff_side *side, const json_t *peak, uint32_t type)
{
	const json_t *groups = json_object_get(json_object_get(peak, "at_peak"), "groups");
	const struct summary_name unknown = {.key = DIFF_NOT_KNOWN};
	uint64_t rest = daemon_pages_number(peak, "bytes");

	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i);
		uint64_t bytes = bits_min(daemon_pages_number(group, "bytes"), rest);

		rest -= bytes;
		diff_run_add_group(side, group, type, bytes);
	}
	if (rest > 0)
		summary_add_row(&side->summary, type, &unknown, SUMMARY_PEAK, rest);
}

/* Whether the report tells what its peaks were made of; older ones do not. */
static bool diff_run_has_at_peak(const struct diff_side *side, const json_t *peaks)
{
	for (size_t i = 0; i < json_array_size(peaks); i++) {
		if (!json_object_get(json_array_get(peaks, i), "at_peak"))
			return false;
	}
	return side->summary.kind == GROUP_SITE && json_array_size(peaks) > 0;
}

static int diff_run_add_peaks(struct diff_side *side, const json_t *peaks)
{
	bool has_rows = diff_run_has_at_peak(side, peaks);
	side->summary.totals.known |= 1u << SUMMARY_PEAK;
	side->summary.rows.known |= has_rows ? 1u << SUMMARY_PEAK : 0;
	for (size_t i = 0; i < json_array_size(peaks); i++) {
		const json_t *peak = json_array_get(peaks, i);
		uint32_t device, type;
		int r;

		r = run_report_place(peak, &device, &type);
		if (r < 0)
			return r;
		summary_add_total(&side->summary, device, type, SUMMARY_PEAK,
				  daemon_pages_number(peak, "bytes"));
		if (has_rows)
			diff_run_add_at_peak(side, peak, type);
		side->is_exact &= !json_is_false(json_object_get(peak, "exact"));
	}
	return 0;
}

static void diff_run_command(struct diff_side *side, const json_t *words)
{
	size_t size = 0;
	FILE *out = must_have(open_memstream(&side->command, &size));
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));

		fprintf(out, "%s%s", i ? " " : "", word ? word : "");
	}
	if (fclose(out) != 0)
		must_end();
}

static int diff_run_fill(struct diff_side *side, const json_t *document)
{
	const json_t *processes = json_object_get(document, "processes");
	const json_t *peaks = json_object_get(document, "peaks");
	int r;

	/* Older reports do not say it: they had processes if anything was tracked. */
	side->is_tracked = json_object_get(document, "tracked")
				   ? json_is_true(json_object_get(document, "tracked"))
				   : json_array_size(processes) > 0;
	side->is_exact = !json_is_false(json_object_get(document, "exact"));
	diff_run_command(side, json_object_get(document, "command"));
	r = diff_run_add_peaks(side, peaks);
	if (r == 0)
		r = diff_run_add_processes(side, processes);
	return r;
}

int diff_load_run(struct diff_side *side, char ret_why[DIFF_WHY])
{
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	int r = run_report_load(side->file, &document, ret_why, DIFF_WHY);

	if (r < 0)
		return r;
	side->kind = "run";
	r = diff_run_fill(side, document);
	if (r < 0)
		(void)snprintf(ret_why, DIFF_WHY, "%s", RUN_REPORT_NONE);
	return r;
}
