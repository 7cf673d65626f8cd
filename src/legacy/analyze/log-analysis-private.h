/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of analysis share: nodes and rows, and how they are found. */

#include "legacy/analyze/log-analysis.h"

enum log_analysis_state {
	LOG_ANALYSIS_NEW = 0,
	LOG_ANALYSIS_LIVE,  /* in its process's list */
	LOG_ANALYSIS_FREED, /* in the list of the freed, as are the ended */
	LOG_ANALYSIS_ENDED, /* its process ended before it was freed */
};

struct log_analysis_node {
	uint64_t address, size;
	uint64_t line;
	struct log_analysis_process *process;
	struct log_analysis_site *site;
	TAILQ_ENTRY(log_analysis_node) list;
	struct log_analysis_node *same; /* of another type at the same place */
	uint32_t refs;
	uint32_t ghosts; /* the server's references to buffers that are gone */
	uint32_t lives;
	uint32_t file;
	uint32_t life; /* of its process, when that ended */
	uint16_t device;
	uint8_t type;
	uint8_t state : 4;
	bool is_resized : 1; /* a line has said so, and the allocation with the new size follows */
	bool is_listed : 1;  /* known only from a list of what was left */
};

/*
 * The best node for an address of an event with a process, on a device, of a type or LOG_READER_NO_TYPE: alive
 * before freed, of the event's size before others. NULL if there is none.
 */
struct log_analysis_node *log_analysis_nodes_find(const struct log_analysis *analysis,
						  const struct log_reader_event *event,
						  struct log_analysis_process *process,
						  uint32_t device, uint32_t type);

/* A new life there, as the event tells: of the freed node, or of a new one. NULL: too many are live. */
struct log_analysis_node *log_analysis_nodes_begin(struct log_analysis *analysis,
						   const struct log_reader_event *event,
						   struct log_analysis_process *process,
						   uint32_t type);

/* The end of a life; the node stays for a while, as @state. */
void log_analysis_nodes_end(struct log_analysis *analysis, struct log_analysis_node *node,
			    enum log_analysis_state state);
void log_analysis_nodes_deinit(struct log_analysis *analysis);

static inline bool log_analysis_is_live(const struct log_analysis_node *node)
{
	return node && node->state == LOG_ANALYSIS_LIVE;
}

/* The end of a process, or how much it had; a buffer that it had; and where a list of those ends. */
void log_analysis_ended_event(struct log_analysis *analysis, const struct log_reader_event *event);
void log_analysis_ended_listed(struct log_analysis *analysis, const struct log_reader_event *event);
void log_analysis_ended_end_list(struct log_analysis *analysis);

/* Rows, made when they are first asked for. */
struct log_analysis_process *log_analysis_rows_process(struct log_analysis *analysis,
						       const struct log_reader_event *event);
struct log_analysis_site *log_analysis_rows_site(struct log_analysis *analysis,
						 const struct log_reader_event *event);
struct log_analysis_device *log_analysis_rows_device(struct log_analysis *analysis, uint32_t format,
						     uint32_t number);
struct log_analysis_sum *log_analysis_rows_sum(struct log_analysis *analysis,
					       const struct log_analysis_node *node);

/* Adds a finding: one row for all of its kind, cause and place. */
void log_analysis_rows_find(struct log_analysis *analysis,
			    const struct log_analysis_finding *finding);

/* Adds one that ttmemd has reported, for the end: it counts if the log has no events of the process. */
void log_analysis_rows_report(struct log_analysis *analysis,
			      const struct log_analysis_finding *finding);
void log_analysis_rows_find_reported(struct log_analysis *analysis);

/* Adds a leak, which is still a live node. */
void log_analysis_rows_leak(struct log_analysis *analysis, const struct log_analysis_node *node,
			    enum log_analysis_how how);
void log_analysis_rows_sort(struct log_analysis *analysis);
