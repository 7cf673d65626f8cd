/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks, and what was left at the ends, as limits are compared with them. */

#include "cli/run/run-limits.h"

#include <errno.h>

#include "base/cleanup.h"
#include "cli/budget/budget-summary.h"
#include "cli/run/run-family.h"
#include "model/sites/site.h"

static struct budget_moment run_limits_moment(const struct snapshot_process *process,
					      uint32_t device, uint32_t type)
{
	return (struct budget_moment){
		.pid = process->pid, .comm = process->comm, .device = device, .type = type};
}

/* A buffer that was live at the moment. */
static int run_limits_add_buffer(struct budget_summary *summary, size_t moment,
				 const struct snapshot_buffer *buffer)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame = {.function = NULL};
	struct budget_part part = {
		.moment = moment,
		.name = buffer->name,
		.phase = buffer->phase,
		.bytes = snapshot_buffer_bytes(buffer),
	};

	if (site_find(&frames, buffer->stack, &frame)) {
		part.function = frame.function;
		part.file = frame.file;
		part.line = frame.line;
	}
	return budget_summary_add(summary, &part);
}

static int run_limits_add_peaks(const struct family *family, struct budget_summary *summary)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < family->highs.count; i++) {
		const struct run_high *high = &family->highs.rows[i];
		struct budget_moment peak = run_limits_moment(
			&family->ended->processes[high->process], high->device, high->type);
		size_t index;

		peak.is_peak = true;
		peak.is_exact = high->is_exact;
		peak.bytes = high->bytes;
		r = budget_summary_begin(summary, &peak, &index);
	}
	return r;
}

static int run_limits_add_ends(const struct snapshot *ended, struct budget_summary *summary)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ended->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &ended->buffers[i];
		const struct budget_moment end = run_limits_moment(
			&ended->processes[buffer->process], buffer->device, buffer->type);
		size_t index;

		r = budget_summary_end_of(summary, &end, &index);
		if (r == 0)
			r = run_limits_add_buffer(summary, index, buffer);
	}
	return r;
}

int run_limits_summarise(const struct family *family, struct budget_summary *summary)
{
	int r = run_limits_add_peaks(family, summary);

	summary->is_tracked = family->end_count > 0 || family->still_running > 0;
	summary->is_incomplete = family->refused || family->trouble;
	if (r == 0)
		r = run_limits_add_ends(family->ended, summary);
	budget_summary_finish(summary);
	return r;
}
