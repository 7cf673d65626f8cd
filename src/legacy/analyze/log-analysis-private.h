/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of analysis share: nodes and rows, and how they are found. */

#include "base/map.h"
#include "base/pool.h"
#include "legacy/analyze/log-analysis.h"

enum log_analysis_state {
	LOG_ANALYSIS_UNUSED = 0,
	LOG_ANALYSIS_LIVE,  /* in its process's list */
	LOG_ANALYSIS_FREED, /* in the list of the freed, as are the ended */
	LOG_ANALYSIS_ENDED, /* its process ended before it was freed */
};

struct log_analysis_node {
	uint64_t address, size;
	uint64_t line;
	uint32_t process, site;
	uint32_t chain;        /* next in its bucket */
	uint32_t newer, older; /* in its list */
	uint32_t refs;
	uint32_t ghosts; /* the server's references to buffers that are gone */
	uint32_t lives;
	uint32_t file;
	uint16_t device;
	uint8_t type, state;
	bool is_resized; /* a line has said so, and the allocation with the new size follows */
};

struct log_analysis {
	uint32_t file;
	uint32_t only_device;
	uint64_t seed;

	struct log_analysis_node *nodes;
	size_t node_count, node_capacity;
	uint32_t *buckets;
	size_t bucket_count; /* a power of two */
	uint32_t unused;     /* nodes, linked through chain */
	size_t live_count, freed_count;
	uint32_t freed_newest, freed_oldest;
	uint64_t forgotten; /* freed ones */

	struct log_analysis_process *processes;
	size_t process_count, process_capacity;
	struct map process_numbers;
	struct log_analysis_site *sites;
	size_t site_count, site_capacity;
	struct map site_numbers;
	struct log_analysis_finding *findings;
	size_t finding_count, finding_capacity;
	struct map finding_numbers;
	struct log_analysis_leak *leaks;
	size_t leak_count, leak_capacity;
	struct pool texts;
	size_t text_bytes; /* in there */

	struct log_analysis_device *devices[LOG_READER_FORMATS][BOOK_DEVICES];
	uint32_t seen_devices[LOG_ANALYSIS_ELSEWHERE]; /* the first of them, all formats */
	size_t seen_device_count;

	uint64_t rejected, restarts, merged, unseen, dropped;
	bool is_inexact;
};

/* Which node is meant. */
struct log_analysis_key {
	uint64_t address;
	uint32_t process;
	uint32_t device;
	uint32_t type; /* or LOG_READER_NO_TYPE, which is like every other */
	bool has_size;
	uint64_t size; /* decides between several */
};

void log_analysis_nodes_init(struct log_analysis *analysis);

/* The best one: alive before freed, of that size before others. NULL if there is none. */
struct log_analysis_node *log_analysis_nodes_find(const struct log_analysis *analysis,
						  const struct log_analysis_key *key);

/* A node for a new life: the freed one of that key, or a new one. -ENOMEM; -ENOSPC: too many live. */
int log_analysis_nodes_begin(struct log_analysis *analysis, const struct log_analysis_key *key,
			     struct log_analysis_node **ret_node);

/* The end of a life; the node stays for a while, as @state. */
void log_analysis_nodes_end(struct log_analysis *analysis, struct log_analysis_node *node,
			    enum log_analysis_state state);

/* Rows, made when they are first asked for. A row beyond the maximum is LOG_ANALYSIS_NONE. 0 or -ENOMEM. */
int log_analysis_rows_process(struct log_analysis *analysis, const struct log_reader_event *event,
			      uint32_t *ret_row);
int log_analysis_rows_site(struct log_analysis *analysis, const struct log_reader_event *event,
			   uint32_t *ret_row);
int log_analysis_rows_device(struct log_analysis *analysis, const struct log_reader_event *event,
			     struct log_analysis_device **ret_device);

/* Adds a finding: one row for all of its kind, cause and place. */
int log_analysis_rows_find(struct log_analysis *analysis,
			   const struct log_analysis_finding *finding);

/* Adds a leak, which is still a live node. */
int log_analysis_rows_leak(struct log_analysis *analysis, const struct log_analysis_node *node,
			   enum log_analysis_how how);

/* Fills in what a shortened line lacks, from what is known. 0 or -ENOMEM. */
int log_analysis_brief_complete(struct log_analysis *analysis, struct log_reader_event *event);

void log_analysis_rows_sort(struct log_analysis *analysis);
void log_analysis_rows_deinit(struct log_analysis *analysis);
