/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A report of `ttmem run --json` as a summary: peaks are the report's, and what was there at the end
 * is added up from the buffers of its processes.
 */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "cli/common/run-report.h"
#include "cli/diff/diff.h"
#include "model/sites/stack.h"

/* The row of what was live at a peak and freed too long ago, or held by another process. */
#define DIFF_NOT_KNOWN "(not known)"

static void diff_run_add_buffer(struct diff_side *side, const struct buffers_row *buffer)
{
	struct summary *summary = &side->summary;
	const struct summary_buffer about = {
		.stack = call_stack_keep(&buffer->frames, &summary->texts),
		.name = buffer->name,
		.phase = buffer->phase,
	};
	struct summary_name name;

	side->has_stacks |= about.stack != NULL;
	summary_name_init(&name, summary, &about);
	summary_add_total(summary, buffer->device, buffer->type, SUMMARY_END, buffer->size);
	summary_add_total(summary, buffer->device, buffer->type, SUMMARY_BUFFERS, 1);
	summary_add_row(summary, buffer->type, &name, SUMMARY_END, buffer->size);
	summary_add_row(summary, buffer->type, &name, SUMMARY_BUFFERS, 1);
}

static void diff_run_add_processes(struct diff_side *side, const struct run_report *report)
{
	const uint32_t known = 1u << SUMMARY_END | 1u << SUMMARY_BUFFERS;

	side->summary.totals.known |= known;
	side->summary.rows.known |= known;
	for (size_t i = 0; i < report->process_count; i++) {
		const struct run_report_process *process = &report->processes[i];

		side->is_exact &= !process->is_partial;
		for (size_t k = 0; k < process->buffer_count; k++)
			diff_run_add_buffer(side, &process->buffers[k]);
	}
}

/*
 * What a group of buffers is called: its calls. Older reports have only a key for people: "TYPE: "
 * comes before its stack, in which allocators are not told apart. Without a stack the first name or
 * phase counts.
 */
static void diff_run_group_name(struct summary_name *name, struct diff_side *side,
				const struct buffers_group *group)
{
	const struct buffers_site *site = &group->site;
	const struct site_names *names = &site->names;
	const char *line = group->key && site->stack.site ? strstr(group->key, ": ") : NULL;
	struct summary_buffer about = {
		.name = names->listed ? names->names->name : NULL,
		.phase = names->listed ? names->names->phase : NULL,
	};

	if (line)
		about.stack = stack_parse(&side->summary.texts, line + 2);
	summary_name_init(name, &side->summary, &about);
	if (line && site->calls && *site->calls)
		name->key = site->calls;
	if (line)
		name->site = call_stack_site(site->stack.site);
}

/* What was live at a peak, by call site; what is not known has a row, too. */
static void diff_run_add_at_peak(struct diff_side *side, const struct run_report_peak *peak)
{
	const struct summary_name unknown = {.key = DIFF_NOT_KNOWN};
	uint64_t rest = peak->bytes;

	for (size_t i = 0; peak->top && i < peak->top->groups.count; i++) {
		const struct buffers_group *group = &peak->top->groups.rows[i];
		uint64_t bytes = bits_min(group->bytes, rest);
		struct summary_name name;

		rest -= bytes;
		diff_run_group_name(&name, side, group);
		summary_add_row(&side->summary, peak->type, &name, SUMMARY_PEAK, bytes);
	}
	if (rest > 0)
		summary_add_row(&side->summary, peak->type, &unknown, SUMMARY_PEAK, rest);
}

/* Whether the report tells what its peaks were made of; older ones do not. */
static bool diff_run_has_at_peak(const struct diff_side *side, const struct run_report *report)
{
	for (size_t i = 0; i < report->peak_count; i++) {
		if (!report->peaks[i].has_top)
			return false;
	}
	return side->summary.kind == GROUP_SITE && report->peak_count > 0;
}

static void diff_run_add_peaks(struct diff_side *side, const struct run_report *report)
{
	bool has_rows = diff_run_has_at_peak(side, report);

	side->summary.totals.known |= 1u << SUMMARY_PEAK;
	side->summary.rows.known |= has_rows ? 1u << SUMMARY_PEAK : 0;
	for (size_t i = 0; i < report->peak_count; i++) {
		const struct run_report_peak *peak = &report->peaks[i];

		summary_add_total(&side->summary, peak->device, peak->type, SUMMARY_PEAK,
				  peak->bytes);
		if (has_rows)
			diff_run_add_at_peak(side, peak);
		side->is_exact &= !peak->is_partial;
	}
}

static void diff_run_command(struct diff_side *side, const struct run_report *report)
{
	size_t size = 0;
	FILE *out = must_have(open_memstream(&side->words, &size));

	for (size_t i = 0; i < report->word_count; i++)
		fprintf(out, "%s%s", i ? " " : "", report->command[i] ? report->command[i] : "");
	if (fclose(out) != 0)
		must_end();
	side->command = side->words;
}

int diff_load_run(struct diff_side *side, char ret_why[DIFF_WHY])
{
	struct run_report report;
	int r = run_report_load(side->file, &report, ret_why, DIFF_WHY);

	if (r < 0)
		return r;
	side->kind = "run";
	/* Older reports do not say it: they had processes if anything was tracked. */
	side->is_tracked = report.says_tracked ? report.is_tracked : report.process_count > 0;
	side->is_exact = !report.is_partial;
	diff_run_command(side, &report);
	diff_run_add_peaks(side, &report);
	diff_run_add_processes(side, &report);
	run_report_unload(&report);
	return 0;
}
