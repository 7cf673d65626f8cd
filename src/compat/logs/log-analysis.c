/* SPDX-License-Identifier: Apache-2.0 */

/* The beginning and the end of an analysis, and its words; the header tells the idea. */

#include "compat/logs/log-analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "compat/logs/log-analysis-private.h"

int analysis_new(struct analysis **ret_analysis)
{
	struct analysis *analysis = calloc(1, sizeof(*analysis));

	if (!analysis)
		return -ENOMEM;
	/* Whoever wrote the log must not choose the collisions. */
	if (getrandom(&analysis->seed, sizeof(analysis->seed), GRND_NONBLOCK) < 0)
		analysis->seed = (uint64_t)(uintptr_t)analysis; /* better than nothing */
	analysis->only_device = ANALYSIS_NONE;
	analysis_nodes_init(analysis);
	*ret_analysis = analysis;
	return 0;
}

struct analysis *analysis_free(struct analysis *analysis)
{
	if (!analysis)
		return NULL;
	analysis_rows_deinit(analysis);
	free(analysis->nodes);
	free(analysis->buckets);
	free(analysis);
	return NULL;
}

void analysis_set_file(struct analysis *analysis, uint32_t file)
{
	analysis->file = file;
}

void analysis_only_device(struct analysis *analysis, uint32_t device)
{
	analysis->only_device = device;
}

int analysis_finish(struct analysis *analysis, struct analysis_result *ret_result)
{
	for (size_t i = 0; i < analysis->node_count; i++) {
		const struct analysis_node *node = &analysis->nodes[i];
		int r = node->state != ANALYSIS_LIVE
				? 0
				: analysis_rows_leak(analysis, node, ANALYSIS_END_OF_LOG);

		if (r < 0)
			return r;
	}
	analysis_rows_sort(analysis);
	*ret_result = (struct analysis_result){
		.leaks = analysis->leaks,
		.leak_count = analysis->leak_count,
		.findings = analysis->findings,
		.finding_count = analysis->finding_count,
		.sites = analysis->sites,
		.site_count = analysis->site_count,
		.processes = analysis->processes,
		.process_count = analysis->process_count,
		.devices = (void *)analysis->devices,
		.rejected = analysis->rejected,
		.restarts = analysis->restarts,
		.merged = analysis->merged,
		.unseen = analysis->unseen,
		.dropped = analysis->dropped,
		.is_exact = !analysis->is_inexact && analysis->dropped == 0,
	};
	return 0;
}

const char *analysis_kind_name(enum analysis_kind kind)
{
	static const char *const names[ANALYSIS_KINDS] = {"double_free", "unknown_free",
							  "size_change"};

	return names[kind];
}

const char *analysis_cause_name(enum analysis_cause cause)
{
	static const char *const names[ANALYSIS_CAUSES] = {
		[ANALYSIS_FREED_BEFORE] = "freed_before",
		[ANALYSIS_ADDRESS_REUSE] = "address_reuse",
		[ANALYSIS_BEFORE_LOG] = "before_log",
		[ANALYSIS_LONG_AGO] = "long_ago",
		[ANALYSIS_RESTART] = "restart",
		[ANALYSIS_OWNER_ENDED] = "owner_ended",
		[ANALYSIS_OTHER_TYPE] = "other_type",
		[ANALYSIS_OTHER_DEVICE] = "other_device",
		[ANALYSIS_OTHER_PROCESS] = "other_process",
		[ANALYSIS_WHILE_LIVE] = "while_live",
		[ANALYSIS_AT_FREE] = "at_free",
	};

	return names[cause];
}
