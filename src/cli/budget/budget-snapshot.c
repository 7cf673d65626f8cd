/* SPDX-License-Identifier: Apache-2.0 */

/* Moments of a summary from snapshots: of books when they end, and of recordings. */

#include "cli/budget/budget-summary.h"
#include "model/sites/site.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"

void budget_summary_add_buffer(struct budget_summary *summary, size_t moment,
			       const struct snapshot_buffer *buffer)
{
	char calls[POOL_TEXT_MAX];
	struct budget_part part = {
		.moment = moment,
		.name = buffer->name,
		.phase = buffer->phase,
		.bytes = snapshot_buffer_bytes(buffer),
	};

	(void)site_choose(buffer->stack, &part.site); /* without one its rank is 0 */
	if (buffer->stack && *stack_calls(buffer->stack, calls, sizeof(calls)))
		part.calls = calls;
	budget_summary_add(summary, &part);
}

static void budget_snapshot_add_peak(struct budget_summary *summary,
				     const struct snapshot *snapshot,
				     const struct snapshot_peak *peak)
{
	const struct snapshot_process *process = &snapshot->processes[peak->process];
	const struct budget_moment moment = {
		.pid = process->id.pid,
		.comm = process->comm,
		.device = peak->device,
		.type = peak->type,
		.is_peak = true,
		.is_exact = peak->bound == SNAPSHOT_EXACT,
		.bytes = peak->bytes,
	};
	size_t index = budget_summary_begin(summary, &moment);

	for (size_t i = 0; i < peak->count; i++)
		budget_summary_add_buffer(summary, index, &snapshot->buffers[peak->first + i]);
}

void budget_summary_add_peaks(struct budget_summary *summary, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->peak_count; i++)
		budget_snapshot_add_peak(summary, snapshot, &snapshot->peaks[i]);
}

void budget_summary_look_for_gave_up(struct budget_summary *summary,
				     const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->process_count; i++)
		budget_summary_set_gave_up(summary, snapshot->processes[i].gave_up);
}
