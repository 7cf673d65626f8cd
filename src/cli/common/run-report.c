/* SPDX-License-Identifier: Apache-2.0 */

/* Reads reports, and refuses what is none. */

#include "cli/common/run-report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/must.h"
#include "model/types.h"

#define ROW struct run_report_part

static const struct field run_report_site_facts[] = {
	FIELD_OR_NULL("function", TEXT, site.frame.function),
	FIELD_OR_NULL("file", TEXT, site.frame.file),
	FIELD_OR_NULL("line", SHORT, site.frame.line, .least = 1),
	FIELD_POINTED("user", site.user, call_stack_place_fields, .is_later = true,
		      .says = "line of the user's own code, as in `site` of other documents"),
	FIELD_POINTED("via", site.via, call_stack_place_fields, .is_later = true,
		      .says = "the function that it called; null: none"),
	FIELD_ARRAY_AT("callers", ROWS, site.callers, site.caller_count,
		       .fields = call_stack_place_fields, .is_later = true,
		       .says = "the frames that called the line of the user, nearest first"),
	FIELD_OR_NULL("name", TEXT, name,
		      .says = "of the buffers, if neither function nor file is known"),
	FIELD_OR_NULL("phase", TEXT, phase),
	FIELD_END,
};

const struct field run_report_site_fields[] = {
	FIELD_MORE(run_report_site_facts),
	FIELD("bytes", BYTES, bytes),
	FIELD_END,
};

const struct field run_report_part_fields[] = {
	FIELD_MORE(run_report_site_facts),
	FIELD_OR_NULL("calls", TEXT, calls,
		      .says = "the stack, which limits of call sites match: functions and files "
			      "without lines; null: no stack"),
	FIELD("bytes", BYTES, bytes),
	FIELD_END,
};

#undef ROW
#define ROW struct run_report_peak

static const struct field run_report_peak_fields[] = {
	FIELD("device", SHORT, device),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("bytes", BYTES, bytes),
	FIELD("exact", NOT, is_partial),
	FIELD_POINTED("at_peak", top, peak_fields, .absent = FIELD_EITHER,
		      .known = FIELD_KNOWN(has_top)),
	FIELD_ARRAY_AT("parts", ROWS, parts, part_count, .fields = run_report_part_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct run_report_leak

const struct field run_report_leak_fields[] = {
	FIELD("key", TEXT, key,
	      .says = "what a baseline compares: type, ': ' and calls; without a stack the type "
		      "and the name without its numbers, or the phase"),
	FIELD("type", NAME, type, .names = types_name),
	FIELD_POINTED("site", site, call_stack_site_fields),
	FIELD("calls", TEXT, calls,
	      .says = "functions and files of the stack without lines; empty: no stack"),
	FIELD_MORE_OF(names, site_names_fields),
	FIELD_OR_NULL("phase", TEXT, phase, .says = "without a name, if all have the same"),
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers, .least = 1),
	FIELD("known", BOOL, is_known),
	FIELD_END,
};

static const struct field run_report_old_leak_fields[] = {
	FIELD("site", TEXT, old_site),
	FIELD_MORE(run_report_leak_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct run_report_process

static const struct field run_report_process_fields[] = {
	FIELD("pid", SHORT, pid),
	FIELD("comm", TEXT, comm),
	FIELD("gave_up", TEXT, gave_up),
	FIELD("exact", NOT, is_partial),
	FIELD_ARRAY_AT("buffers", ROWS, buffers, buffer_count, .fields = buffers_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct run_report

static const struct field run_report_fields[] = {
	FIELD("schema", TEXT, schema),
	FIELD_IF(says_tracked, "tracked", BOOL, is_tracked),
	FIELD("exact", NOT, is_partial),
	FIELD("refused", SHORT, refused),
	FIELD_ARRAY_AT("command", TEXTS, command, word_count),
	FIELD_ARRAY_AT("peaks", ROWS, peaks, peak_count, .fields = run_report_peak_fields,
		       .known = FIELD_KNOWN(has_peaks)),
	FIELD_ARRAY_AT("leaks", ROWS, leaks, leak_count, .fields = run_report_old_leak_fields,
		       .known = FIELD_KNOWN(has_leaks)),
	FIELD_ARRAY_AT("processes", ROWS, processes, process_count,
		       .fields = run_report_process_fields, .known = FIELD_KNOWN(has_processes)),
	FIELD_END,
};

bool run_report_is_one(const struct run_report *report)
{
	return report->schema && strcmp(report->schema, "ttmem.run/1") == 0;
}

static bool run_report_is_place(uint32_t device, uint32_t type)
{
	return device < BOOK_DEVICES && types_name(type);
}

static bool run_report_has_places(const struct run_report *report)
{
	bool has = true;

	for (size_t i = 0; i < report->peak_count; i++)
		has &= run_report_is_place(report->peaks[i].device, report->peaks[i].type);
	for (size_t i = 0; i < report->process_count; i++) {
		const struct run_report_process *process = &report->processes[i];

		for (size_t k = 0; k < process->buffer_count; k++)
			has &= run_report_is_place(process->buffers[k].device,
						   process->buffers[k].type);
	}
	return has;
}

int run_report_read(const char *path, const char *otherwise, struct run_report *ret_report,
		    char *ret_why, size_t size)
{
	json_error_t error;
	char shown[TEXT_ESCAPE_SIZE(JSON_ERROR_TEXT_LENGTH)];
	CLEANUP_FCLOSE FILE *file = fopen(path, "re");
	struct run_report report = {.rows = POOL_NULL};

	if (!file) {
		(void)snprintf(ret_why, size, "%s", strerrordesc_np(errno));
		return -EINVAL;
	}
	report.document = json_loadf(file, 0, &error);
	if (!report.document) {
		(void)text_escape(error.text, shown, sizeof(shown)); /* it quotes the file */
		if (error.line > 0)
			(void)snprintf(ret_why, size, "%s: line %d: %s", otherwise, error.line,
				       shown);
		else
			(void)snprintf(ret_why, size, "cannot be read");
		return -EINVAL;
	}
	must_not_lack(fields_take(report.document, run_report_fields, &report, &report.rows));
	*ret_report = report;
	return 0;
}

void run_report_unload(struct run_report *report)
{
	pool_deinit(&report->rows);
	json_decref(report->document);
}

int run_report_load(const char *path, struct run_report *ret_report, char *ret_why, size_t size)
{
	struct run_report report;
	int r = run_report_read(path, "neither a recording nor JSON", &report, ret_why, size);

	if (r < 0)
		return r;
	if (!run_report_is_one(&report) || !report.has_peaks || !report.has_processes ||
	    !run_report_has_places(&report)) {
		run_report_unload(&report);
		(void)snprintf(ret_why, size, "%s", RUN_REPORT_NONE);
		return -EINVAL;
	}
	*ret_report = report;
	return 0;
}
