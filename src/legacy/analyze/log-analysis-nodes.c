/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nodes of an analysis: a balanced tree of places, because who wrote the log must not be able to make it slow, and
 * two kinds of lists: the live nodes of each process, and the freed ones, of which the oldest is forgotten first.
 */

#include <search.h>
#include <stdlib.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "legacy/analyze/log-analysis-private.h"

/* Of places. The type is not part of it: many frees do not have one. */
static int nodes_compare(const void *left, const void *right)
{
	const struct log_analysis_node *a = left, *b = right;
	int r = bits_compare(a->address, b->address);

	if (r == 0)
		r = bits_compare(a->device, b->device);
	return r ? r : bits_compare(a->process->number, b->process->number);
}

/* How well a node of the right place fits. */
static unsigned int nodes_rank(const struct log_analysis_node *node,
			       const struct log_reader_event *event)
{
	bool same_size = event->has_size && node->size == event->size;

	return (node->state == LOG_ANALYSIS_LIVE    ? 8u
		: node->state == LOG_ANALYSIS_FREED ? 4u
						    : 2u) +
	       same_size;
}

struct log_analysis_node *log_analysis_nodes_find(const struct log_analysis *analysis,
						  const struct log_reader_event *event,
						  struct log_analysis_process *process,
						  uint32_t device, uint32_t type)
{
	const struct log_analysis_node key = {
		.address = event->address, .device = (uint16_t)device, .process = process};
	struct log_analysis_node *const *place = tfind(&key, &analysis->places, nodes_compare);
	struct log_analysis_node *best = NULL;

	for (struct log_analysis_node *node = place ? *place : NULL; node; node = node->same) {
		if ((node->type == type || node->type == LOG_READER_NO_TYPE ||
		     type == LOG_READER_NO_TYPE) &&
		    (!best || nodes_rank(node, event) > nodes_rank(best, event)))
			best = node;
	}
	return best;
}

static void nodes_enter(struct log_analysis *analysis, struct log_analysis_node *node,
			enum log_analysis_state state)
{
	struct log_analysis_sum *sum = log_analysis_rows_sum(analysis, node);

	node->state = state & 15;
	if (state == LOG_ANALYSIS_LIVE) {
		TAILQ_INSERT_HEAD(&node->process->live, node, list);
		analysis->live_count++;
		node->site->sum.allocs++;
		node->site->sum.bytes += node->size;
		sum->reuses += node->lives > 1;
		sum->live++;
		sum->live_bytes += node->size;
		sum->peak_bytes = bits_max(sum->peak_bytes, sum->live_bytes);
	} else {
		TAILQ_INSERT_HEAD(&analysis->freed, node, list);
		analysis->freed_count++;
	}
}

static void nodes_leave(struct log_analysis *analysis, struct log_analysis_node *node)
{
	struct log_analysis_sum *sum = log_analysis_rows_sum(analysis, node);

	if (log_analysis_is_live(node)) {
		TAILQ_REMOVE(&node->process->live, node, list);
		analysis->live_count--;
		sum->live--;
		sum->live_bytes -= node->size;
	} else {
		TAILQ_REMOVE(&analysis->freed, node, list);
		analysis->freed_count--;
	}
}

struct log_analysis_node *log_analysis_nodes_begin(struct log_analysis *analysis,
						   const struct log_reader_event *event,
						   struct log_analysis_process *process,
						   uint32_t type)
{
	struct log_analysis_site *site = log_analysis_rows_site(analysis, event);
	struct log_analysis_node *node, **place;

	if (analysis->live_count >= LOG_ANALYSIS_LIVE_MAX) {
		analysis->is_inexact = true;
		return NULL;
	}
	node = log_analysis_nodes_find(analysis, event, process, event->device, type);
	/* A freed node becomes live again; another type at the same address is another node. */
	if (node && !log_analysis_is_live(node) && node->type == type) {
		nodes_leave(analysis, node);
	} else {
		node = must_alloc(1, sizeof(*node));
		node->address = event->address;
		node->process = process;
		node->device = (uint16_t)event->device;
		node->type = (uint8_t)type;
		place = must_have(tsearch(node, &analysis->places, nodes_compare));
		if (*place != node) {
			node->same = *place;
			*place = node;
		}
	}
	node->size = event->size;
	node->line = event->line;
	node->file = analysis->file;
	node->site = site;
	node->lives += node->lives < UINT32_MAX;
	node->refs = event->refs > 0 ? event->refs : 1;
	node->ghosts = 0;
	node->is_listed = false;
	nodes_enter(analysis, node, LOG_ANALYSIS_LIVE);
	return node;
}

/* Forgets it. */
static void nodes_remove(struct log_analysis *analysis, struct log_analysis_node *node)
{
	struct log_analysis_node **place = tfind(node, &analysis->places, nodes_compare);

	nodes_leave(analysis, node);
	if (*place == node && !node->same) {
		(void)tdelete(node, &analysis->places, nodes_compare);
	} else {
		while (*place != node)
			place = &(*place)->same;
		*place = node->same;
	}
	free(node);
}

void log_analysis_nodes_end(struct log_analysis *analysis, struct log_analysis_node *node,
			    enum log_analysis_state state)
{
	nodes_leave(analysis, node);
	node->refs = 0;
	nodes_enter(analysis, node, state);
	if (analysis->freed_count <= LOG_ANALYSIS_FREED_MAX)
		return;
	nodes_remove(analysis, TAILQ_LAST(&analysis->freed, log_analysis_nodes));
	analysis->forgotten++;
}

static void nodes_free(void *place)
{
	struct log_analysis_node *node = place;

	while (node) {
		struct log_analysis_node *same = node->same;

		free(node);
		node = same;
	}
}

void log_analysis_nodes_deinit(struct log_analysis *analysis)
{
	tdestroy(analysis->places, nodes_free);
}
