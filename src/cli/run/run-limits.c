/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks, and what was left at the ends, as limits are compared with them. */

#include "cli/run/run-limits.h"

#include "cli/budget/budget-summary.h"
#include "cli/run/run-family.h"
#include "model/snapshot.h"
#include "source/books/scan.h"

/* For each device and type, that of the process that held the most. */
static void run_limits_add_peaks(const struct run_peaks *peaks, struct budget_summary *summary)
{
	for (size_t i = 0; i < peaks->count; i++)
		budget_summary_add_peaks(summary, peaks->tops[i]);
}

static void run_limits_add_ends(const struct snapshot *ended, struct budget_summary *summary)
{
	for (size_t i = 0; i < ended->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &ended->buffers[i];
		const struct snapshot_process *process = &ended->processes[buffer->process];
		const struct budget_moment end = {.pid = process->id.pid,
						  .comm = process->comm,
						  .device = buffer->device,
						  .type = buffer->type};
		budget_summary_add_buffer(summary, budget_summary_end_of(summary, &end), buffer);
	}
}

/* Those that still run are not judged, but say it, too. */
void run_limits_find_gave_up(struct family *family)
{
	struct snapshot *ended = family->ended;

	for (size_t i = 0; !family->gave_up && i < ended->process_count; i++) {
		family->gave_up = ended->processes[i].gave_up;
		family->gave_up_pid = ended->processes[i].id.pid;
	}
	for (size_t i = 0; !family->gave_up && i < family->peer_count; i++) {
		struct scan_book *book = family->peers[i]->book;
		size_t length = 0;
		const char *text;

		if (!book || reader_refresh(&book->reader) < 0 || !book->reader.header.gave_up)
			continue;
		text = reader_string(&book->reader, book->reader.header.gave_up, &length);
		text = text ? snapshot_text(ended, text, length) : NULL;
		family->gave_up = text ? text : "the reason is not known";
		family->gave_up_pid = book->owner.id.pid;
	}
}

void run_limits_summarise(const struct family *family, struct budget_summary *summary)
{
	run_limits_add_peaks(&family->peaks, summary);

	summary->is_tracked = family->end_count > 0 || family->still_running > 0;
	summary->is_incomplete = family->refused || family->trouble;
	budget_summary_set_gave_up(summary, family->gave_up);
	run_limits_add_ends(family->ended, summary);
	budget_summary_finish(summary);
}
