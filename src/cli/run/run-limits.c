/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks, and what was left at the ends, as limits are compared with them. */

#include "cli/run/run-limits.h"

#include <errno.h>

#include "base/cleanup.h"
#include "cli/budget/budget-summary.h"
#include "cli/run/run-family.h"
#include "model/sites/site.h"
#include "model/snapshot-peak.h"

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

static int run_limits_add_peak(struct budget_summary *summary, const struct snapshot *top,
			       const struct snapshot_peak *peak)
{
	struct budget_moment moment =
		run_limits_moment(&top->processes[peak->process], peak->device, peak->type);
	size_t index;
	int r;

	moment.is_peak = true;
	moment.is_exact = peak->bound == SNAPSHOT_EXACT;
	moment.bytes = peak->bytes;
	r = budget_summary_begin(summary, &moment, &index);
	for (size_t i = 0; r == 0 && i < peak->count; i++)
		r = run_limits_add_buffer(summary, index, &top->buffers[peak->first + i]);
	return r;
}

/* For each device and type, that of the process that held the most. */
static int run_limits_add_peaks(const struct run_peaks *peaks, struct budget_summary *summary)
{
	int r = 0;

	for (size_t i = 0; i < peaks->count; i++) {
		const struct snapshot *top = peaks->tops[i];

		for (size_t k = 0; r == 0 && k < top->peak_count; k++)
			r = run_limits_add_peak(summary, top, &top->peaks[k]);
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
	int r = run_limits_add_peaks(&family->peaks, summary);

	summary->is_tracked = family->end_count > 0 || family->still_running > 0;
	summary->is_incomplete = family->refused || family->trouble;
	if (r == 0)
		r = run_limits_add_ends(family->ended, summary);
	budget_summary_finish(summary);
	return r;
}
