/* SPDX-License-Identifier: Apache-2.0 */

/* The summary of a run from its report, ttmem.run/1. */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/budget/budget-summary.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/run-report.h"
#include "cli/common/site-json.h"

/* @place: what has function, file and line; @row: what has name and phase. */
static void budget_document_part(struct budget_summary *summary, size_t moment, const json_t *place,
				 const json_t *row, uint64_t bytes)
{
	const struct site site = site_json_read(place);
	struct budget_part part = {
		.moment = moment,
		.function = daemon_pages_text(place, "function"),
		.file = daemon_pages_text(place, "file"),
		.line = (uint32_t)daemon_pages_number(place, "line"),
		.name = daemon_pages_text(row, "name"),
		.calls = daemon_pages_text(row, "calls"),
		.phase = daemon_pages_text(row, "phase"),
		.bytes = bytes,
	};

	budget_part_set_lines(&part, &site);
	budget_summary_add(summary, &part);
}

/* The process that held the most, and what was live in it then. Older reports have only the bytes. */
static int budget_document_peak(struct budget_summary *summary, const json_t *row)
{
	const json_t *top = json_object_get(row, "at_peak"), *parts = json_object_get(row, "parts");
	const char *bound = daemon_pages_text(top, "bound");
	struct budget_moment peak = {
		.pid = (uint32_t)daemon_pages_number(top, "pid"),
		.comm = daemon_pages_text(top, "comm"),
		.is_peak = true,
		.is_exact = bound ? strcmp(bound, "exact") == 0
				  : json_is_true(json_object_get(row, "exact")),
		.bytes = daemon_pages_number(json_is_object(top) ? top : row, "bytes"),
	};
	size_t index;
	int r = run_report_place(row, &peak.device, &peak.type);

	if (r < 0)
		return r;
	index = budget_summary_begin(summary, &peak);
	for (size_t i = 0; i < json_array_size(parts); i++) {
		const json_t *part = json_array_get(parts, i);

		budget_document_part(summary, index, part, part,
				     daemon_pages_number(part, "bytes"));
	}
	return 0;
}

static int budget_document_buffers(struct budget_summary *summary, const json_t *buffers,
				   const struct budget_moment *process)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(buffers); i++) {
		const json_t *row = json_array_get(buffers, i);
		struct budget_moment end = *process;

		r = run_report_place(row, &end.device, &end.type);
		if (r == 0)
			budget_document_part(summary, budget_summary_end_of(summary, &end),
					     json_object_get(row, "site"), row,
					     daemon_pages_number(row, "size"));
	}
	return r;
}

static int budget_document_fill(struct budget_summary *summary, const json_t *document)
{
	const json_t *peaks = json_object_get(document, "peaks"),
		     *processes = json_object_get(document, "processes");
	int r = 0;

	summary->is_tracked = json_is_true(json_object_get(document, "tracked"));
	summary->is_incomplete = daemon_pages_number(document, "refused") > 0;
	for (size_t i = 0; r == 0 && i < json_array_size(peaks); i++)
		r = budget_document_peak(summary, json_array_get(peaks, i));
	for (size_t i = 0; r == 0 && i < json_array_size(processes); i++) {
		const json_t *row = json_array_get(processes, i);
		const struct budget_moment process = {
			.pid = (uint32_t)daemon_pages_number(row, "pid"),
			.comm = daemon_pages_text(row, "comm"),
		};

		if (json_is_string(json_object_get(row, "gave_up")))
			budget_summary_set_gave_up(summary, daemon_pages_text(row, "gave_up"));
		r = budget_document_buffers(summary, json_object_get(row, "buffers"), &process);
	}
	budget_summary_finish(summary);
	return r;
}

int budget_summary_load(const char *path, struct budget_summary *ret_summary, char *ret_error,
			size_t size)
{
	CLEANUP(daemon_pages_unload) json_t *document = NULL;
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	int r = run_report_load(path, &document, ret_error, size);

	if (r < 0)
		return r;
	r = budget_document_fill(&summary, document);
	if (r < 0) {
		(void)snprintf(ret_error, size, "%s", RUN_REPORT_NONE);
		budget_summary_deinit(&summary);
		return r;
	}
	*ret_summary = summary;
	return 0;
}
