/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ends of processes, and of the log. A server says that a process is dead and how much it removed; ttmemd lists what
 * was left. Both may be in a log, of the same process, and before the lines of the buffers themselves.
 */

#include "base/bits.h"
#include "legacy/analyze/log-analysis-private.h"

/* Circular buffers or kernels of an ended process. The line names no device, so only if there is no choice. */
static void removed_counted(struct log_analysis *analysis, const struct log_reader_event *event)
{
	struct log_analysis_sum *only = NULL;

	for (uint32_t i = 0; i < BOOK_DEVICES; i++) {
		struct log_analysis_device *device = analysis->devices[i];

		if (!device || device->sums[event->type].live == 0)
			continue;
		if (only)
			return;
		only = &device->sums[event->type];
	}
	if (!only)
		return;
	only->live -= bits_min(only->live, event->count);
	only->live_bytes -= only->live ? bits_min(only->live_bytes, event->size) : only->live_bytes;
}

/* What is live of a process is left. */
static void leave(struct log_analysis *analysis, struct log_analysis_process *process)
{
	struct log_analysis_node *node;

	process->has_ended = true;
	while ((node = TAILQ_FIRST(&process->live))) {
		log_analysis_rows_leak(analysis, node, LOG_ANALYSIS_PROCESS_ENDED);
		node->is_resized = false;
		log_analysis_nodes_end(analysis, node, LOG_ANALYSIS_ENDED);
		node->life = process->life;
		process->ended++;
	}
}

/* All has been said of the end of a process; its pid may be used again. */
static void forget(struct log_analysis *analysis, struct log_analysis_process *process)
{
	leave(analysis, process);
	process->missing_before += process->missing;
	analysis->unlisted += process->is_listed ? process->missing : 0;
	process->missing = process->ended = 0;
	process->is_listed = false;
	process->life++;
}

void log_analysis_ended_end_list(struct log_analysis *analysis)
{
	if (analysis->leaving)
		forget(analysis, analysis->leaving);
	analysis->leaving = NULL;
}

void log_analysis_ended_listed(struct log_analysis *analysis, const struct log_reader_event *event)
{
	struct log_analysis_process *process = log_analysis_rows_process(analysis, event);
	struct log_analysis_node *node =
		log_analysis_nodes_find(analysis, event, process, event->device, event->type);
	bool is_wanted = !analysis->has_only_device || event->device == analysis->only_device;

	analysis->leaving = process;
	if (node && (node->state == LOG_ANALYSIS_LIVE ||
		     (node->state == LOG_ANALYSIS_ENDED && node->life == process->life)))
		return;
	process->missing -= process->missing > 0;
	node = is_wanted ? log_analysis_nodes_begin(analysis, event, process, event->type) : NULL;
	if (node)
		node->is_listed = true;
}

void log_analysis_ended_event(struct log_analysis *analysis, const struct log_reader_event *event)
{
	struct log_analysis_process *process = log_analysis_rows_process(analysis, event);
	uint64_t count = event->count;

	if (event->kind == LOG_READER_DEAD) {
		process->missing_before += process->missing;
		process->missing = process->ended = 0;
		process->life++;
		leave(analysis, process);
	} else if (event->kind == LOG_READER_LEFT) {
		analysis->leaving = process;
		process->is_listed = true;
		leave(analysis, process);
		count = bits_max(count, 1); /* without a number there was at least one */
		process->missing = count - bits_min(count, process->ended);
	} else if (event->type != LOG_READER_NO_TYPE) {
		removed_counted(analysis, event);
	} else if (!analysis->has_only_device) { /* else those of the others are not missing */
		process->missing = count - bits_min(count, process->ended);
	}
}

/* What is live when the log ends. */
static void finish_process(struct log_analysis *analysis, struct log_analysis_process *process)
{
	uint64_t live = 0, missing = process->missing_before + process->missing;
	struct log_analysis_node *node;
	bool was_late;

	TAILQ_FOREACH(node, &process->live, list)
	{
		live++;
	}
	/* The line of the end came before those of the buffers, and has told how many there are. */
	was_late = missing > 0 && missing >= live;
	TAILQ_FOREACH(node, &process->live, list)
	{
		log_analysis_rows_leak(analysis, node,
				       was_late ? LOG_ANALYSIS_PROCESS_ENDED
						: LOG_ANALYSIS_END_OF_LOG);
	}
	analysis->unseen += missing - (was_late ? live : 0);
}

void log_analysis_finish(struct log_analysis *analysis)
{
	log_analysis_ended_end_list(analysis);
	for (size_t i = 0; i < analysis->process_count; i++)
		finish_process(analysis, analysis->processes[i]);
	log_analysis_rows_find_reported(analysis);
	analysis->unlisted = bits_min(analysis->unlisted, analysis->unseen);
	log_analysis_rows_sort(analysis);
}
