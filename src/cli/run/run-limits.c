/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks, and what was left at the ends, as limits are compared with them. */

#include "cli/run/run-limits.h"

#include "cli/budget/budget-summary.h"
#include "cli/run/run-family.h"
#include "model/snapshot.h"

/* For each device and type, that of the process that held the most. */
static int run_limits_add_peaks(const struct run_peaks *peaks, struct budget_summary *summary)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < peaks->count; i++)
		r = budget_summary_add_peaks(summary, peaks->tops[i]);
	return r;
}

static int run_limits_add_ends(const struct snapshot *ended, struct budget_summary *summary)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ended->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &ended->buffers[i];
		const struct snapshot_process *process = &ended->processes[buffer->process];
		const struct budget_moment end = {.pid = process->pid,
						  .comm = process->comm,
						  .device = buffer->device,
						  .type = buffer->type};
		size_t index;

		r = budget_summary_end_of(summary, &end, &index);
		if (r == 0)
			r = budget_summary_add_buffer(summary, index, buffer);
	}
	return r;
}

int run_limits_summarise(const struct family *family, struct budget_summary *summary)
{
	int r = run_limits_add_peaks(&family->peaks, summary);

	summary->is_tracked = family->end_count > 0 || family->still_running > 0;
	summary->is_incomplete = family->refused || family->trouble;
	if (r == 0)
		r = run_limits_add_ends(family->ended, summary);
	budget_summary_finish(summary);
	return r;
}
