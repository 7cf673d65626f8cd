/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.run/1: the report for scripts, and the baseline of later runs. */

#include "cli/run/run-report.h"

#include <string.h>

#include "answers/buffers.h"
#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "answers/sites.h"
#include "base/emit.h"
#include "cli/budget/budget-output.h"
#include "cli/run/run-family.h"
#include "model/types.h"

/* Without memory for the groups it is left out. */
static void report_json_at_peak(struct emit *json, const struct report *report, uint32_t device,
				uint32_t type)
{
	const struct snapshot *top;
	const struct snapshot_peak *peak =
		run_peaks_find(&report->family->peaks, device, type, &top);

	if (!peak || peak_put_row(json, "at_peak", top, peak, GROUP_SITE) < 0)
		emit_null(json, "at_peak");
}

static void report_json_peaks(struct emit *json, const struct report *report)
{
	emit_open_array(json, "peaks");
	for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct family_peak *peak = &report->family->peak[device][type];

			if (peak->processes == 0 || peak->bytes == 0)
				continue;
			emit_open_object(json, NULL);
			emit_u64(json, "device", device);
			emit_string(json, "type", types_name(type));
			emit_u64(json, "bytes", peak->bytes);
			emit_bool(json, "exact", !peak->sampled && !peak->is_bound);
			report_json_at_peak(json, report, device, type);
			budget_put_parts(&report->limits->summary, device, type, json);
			emit_close_object(json);
		}
	}
	emit_close_array(json);
}

static void report_json_stacks(struct emit *json, const struct report_site *site)
{
	emit_open_array(json, "stacks");
	for (size_t i = 0; i < site->stacks.count; i++) {
		const struct call_site *stack = &site->stacks.groups[i];

		if (!stack->stack)
			continue;
		emit_open_object(json, NULL);
		emit_u64(json, "bytes", stack->bytes);
		emit_u64(json, "buffers", stack->buffers);
		call_stack_put(json, stack->stack);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void report_json_leaks(struct emit *json, const struct report *report)
{
	char key[REPORT_KEY];

	emit_open_array(json, "leaks");
	for (size_t i = 0; i < report->site_count; i++) {
		const struct report_site *site = &report->sites[i];
		const struct call_site *group = report_group(site);
		struct site chosen;

		emit_open_object(json, NULL);
		emit_string(json, "key", report_key(site, key, sizeof(key)));
		emit_string(json, "type", types_name(group->type));
		(void)site_choose(site->stacks.groups[0].stack, &chosen); /* without one it is null */
		call_stack_put_site(json, &chosen);
		emit_string(json, "calls", site->calls);
		/* A baseline needs all. */
		site_names_put(json, site->sum.names, site->sum.name_count, group->names);
		emit_string(json, "phase", group->names == 1 ? group->phase : NULL);
		emit_u64(json, "bytes", group->bytes);
		emit_u64(json, "buffers", group->buffers);
		emit_bool(json, "known", site->known);
		report_json_stacks(json, site);
		emit_close_object(json);
	}
	emit_close_array(json);
}

/* One ended process and what it left, as in ttmem.leaks/1. */
static void report_json_process(struct emit *json, const struct snapshot *ended,
				const struct family_end *end)
{
	const struct snapshot_process *process = &ended->processes[end->process];
	uint64_t bytes = 0;

	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->id.pid);
	emit_string(json, "comm", process->comm);
	emit_u64(json, "user_id", process->user_id);
	emit_u64(json, "start_ns", process->start_ns);
	emit_u64(json, "ended_ns", end->ending.ended_ns);
	emit_string(json, "how", end->ending.closed ? "closed" : "died");
	emit_bool(json, "exec", end->ending.execed);
	ended_put_exit(json, &end->ending);
	emit_bool(json, "exact", process->exact);
	emit_string(json, "gave_up", process->gave_up);
	emit_open_array(json, "buffers");
	for (size_t i = 0; i < ended->buffer_count; i++) {
		if (ended->buffers[i].process != end->process)
			continue;
		buffers_put_row(json, ended, &ended->buffers[i]);
		bytes += ended->buffers[i].size;
	}
	emit_close_array(json);
	emit_u64(json, "bytes", bytes);
	emit_close_object(json);
}

/* A process that called exec has one row and an end per program: the last one counts. */
static bool report_json_is_last(const struct family *family, size_t i)
{
	for (size_t k = i + 1; k < family->end_count; k++) {
		if (family->ends[k].process == family->ends[i].process)
			return false;
	}
	return true;
}

void report_json(const struct report *report, FILE *out)
{
	const struct family *family = report->family;
	const struct snapshot *ended = family->ended;
	struct emit json = EMIT_INIT(out);

	document_open(&json, "ttmem.run/1", ended->time_ns);
	emit_open_array(&json, "command");
	for (char **word = report->argv; *word; word++)
		emit_string(&json, NULL, *word);
	emit_close_array(&json);
	ended_put_exit(&json, &family->command);
	emit_u64(&json, "duration_ns", report->duration_ns);
	emit_bool(&json, "tracked", report->is_tracked);
	emit_string(&json, "gave_up", family->gave_up);
	emit_bool(&json, "leaked", report->new_buffers > 0);
	emit_u64(&json, "leaked_bytes", report->leaked_bytes);
	emit_u64(&json, "leaked_buffers", report->leaked_buffers);
	emit_u64(&json, "ignored_buffers", report->ignored_buffers);
	if (family->strict_close) {
		emit_open_object(&json, "held_at_close");
		emit_u64(&json, "bytes", report->held_bytes);
		emit_u64(&json, "buffers", report->held_buffers);
		emit_close_object(&json);
	} else {
		emit_null(&json, "held_at_close");
	}
	emit_u64(&json, "without_book", family->without_book);
	emit_u64(&json, "untracked", family->untracked);
	emit_u64(&json, "still_running", family->still_running);
	emit_u64(&json, "refused", family->refused);
	report_json_peaks(&json, report);
	if (report->limits->budget.count > 0)
		budget_put_json(report->limits, &json);
	report_json_leaks(&json, report);
	emit_open_array(&json, "processes");
	for (size_t i = 0; i < family->end_count; i++) {
		if (report_json_is_last(family, i))
			report_json_process(&json, ended, &family->ends[i]);
	}
	emit_close_array(&json);
	emit_open_array(&json, "incidents");
	for (size_t i = 0; i < ended->incident_count; i++)
		incident_put(&json, ended, &ended->incidents[i]);
	emit_close_array(&json);
	document_list_end(&json, ended->exact && !family->gave_up);
	document_close(&json, ended);
}
