/* SPDX-License-Identifier: Apache-2.0 */

/* The summary of a run from its report, ttmem.run/1. */

#include "cli/budget/budget-summary.h"
#include "cli/common/run-report.h"
#include "model/snapshot.h"

/* The process that held the most, and what was live in it then. Older reports have only the bytes. */
static void budget_document_peak(struct budget_summary *summary, const struct run_report_peak *row)
{
	const struct peak_row *top = row->top;
	const struct budget_moment peak = {
		.pid = top ? top->pid : 0,
		.comm = top ? top->comm : NULL,
		.device = row->device,
		.type = row->type,
		.is_peak = true,
		.is_exact = top ? top->bound == SNAPSHOT_EXACT : !row->is_partial,
		.bytes = top ? top->bytes : row->bytes,
	};
	size_t index = budget_summary_begin(summary, &peak);

	for (size_t i = 0; i < row->part_count; i++) {
		const struct run_report_part *part = &row->parts[i];

		budget_summary_add(summary, &(struct budget_part){
						    .moment = index,
						    .site = call_stack_site(&part->site),
						    .name = part->name,
						    .calls = part->calls,
						    .phase = part->phase,
						    .bytes = part->bytes,
					    });
	}
}

static void budget_document_buffers(struct budget_summary *summary,
				    const struct run_report_process *process)
{
	for (size_t i = 0; i < process->buffer_count; i++) {
		const struct buffers_row *buffer = &process->buffers[i];
		const struct budget_moment end = {
			.pid = process->pid,
			.comm = process->comm,
			.device = buffer->device,
			.type = buffer->type,
		};

		budget_summary_add(summary, &(struct budget_part){
						    .moment = budget_summary_end_of(summary, &end),
						    .site = call_stack_site(buffer->frames.site),
						    .name = buffer->name,
						    .calls = buffer->calls,
						    .phase = buffer->phase,
						    .bytes = buffer->size,
					    });
	}
}

int budget_summary_load(const char *path, struct budget_summary *ret_summary, char *ret_error,
			size_t size)
{
	struct run_report report;
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	int r = run_report_load(path, &report, ret_error, size);

	if (r < 0)
		return r;
	summary.is_tracked = report.is_tracked;
	summary.is_incomplete = report.refused > 0;
	for (size_t i = 0; i < report.peak_count; i++)
		budget_document_peak(&summary, &report.peaks[i]);
	for (size_t i = 0; i < report.process_count; i++) {
		budget_summary_set_gave_up(&summary, report.processes[i].gave_up);
		budget_document_buffers(&summary, &report.processes[i]);
	}
	budget_summary_finish(&summary);
	run_report_unload(&report);
	*ret_summary = summary;
	return 0;
}
