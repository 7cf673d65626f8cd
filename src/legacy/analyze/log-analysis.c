/* SPDX-License-Identifier: Apache-2.0 */

/* Start and end of an analysis, and its names. */

#include "legacy/analyze/log-analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/bits.h"
#include "legacy/analyze/log-analysis-private.h"

int log_analysis_new(struct log_analysis **ret_analysis)
{
	struct log_analysis *analysis = calloc(1, sizeof(*analysis));

	if (!analysis)
		return -ENOMEM;
	/* Whoever wrote the log must not be able to choose the collisions. */
	if (getrandom(&analysis->seed, sizeof(analysis->seed), GRND_NONBLOCK) < 0)
		analysis->seed = (uint64_t)(uintptr_t)analysis; /* better than nothing */
	analysis->only_device = LOG_ANALYSIS_NONE;
	log_analysis_nodes_init(analysis);
	*ret_analysis = analysis;
	return 0;
}

struct log_analysis *log_analysis_free(struct log_analysis *analysis)
{
	if (!analysis)
		return NULL;
	log_analysis_rows_deinit(analysis);
	free(analysis->nodes);
	free(analysis->buckets);
	free(analysis);
	return NULL;
}

void log_analysis_set_file(struct log_analysis *analysis, uint32_t file)
{
	analysis->file = file;
}

void log_analysis_only_device(struct log_analysis *analysis, uint32_t device)
{
	analysis->only_device = device;
}

int log_analysis_finish(struct log_analysis *analysis, struct log_analysis_result *ret_result)
{
	for (size_t i = 0; i < analysis->node_count; i++) {
		const struct log_analysis_node *node = &analysis->nodes[i];
		int r = node->state != LOG_ANALYSIS_LIVE
				? 0
				: log_analysis_rows_leak(analysis, node, LOG_ANALYSIS_END_OF_LOG);

		if (r < 0)
			return r;
	}
	log_analysis_rows_sort(analysis);
	*ret_result = (struct log_analysis_result){
		.leaks = analysis->leaks,
		.leak_count = analysis->leak_count,
		.findings = analysis->findings,
		.finding_count = analysis->finding_count,
		.sites = analysis->sites,
		.site_count = analysis->site_count,
		.processes = analysis->processes,
		.process_count = analysis->process_count,
		.devices = analysis->devices[0],
		.rejected = analysis->rejected,
		.restarts = analysis->restarts,
		.merged = analysis->merged,
		.unseen = analysis->unseen,
		.dropped = analysis->dropped,
		.is_exact = !analysis->is_inexact && analysis->dropped == 0,
	};
	return 0;
}

const char *log_analysis_how_name(uint32_t how)
{
	static const char *const names[] = {"end_of_log", "process_ended"};

	return how < ARRAY_SIZE(names) ? names[how] : NULL;
}

const char *log_analysis_kind_name(uint32_t kind)
{
	static const char *const names[LOG_ANALYSIS_KINDS] = {"double_free", "unknown_free",
							      "size_change"};

	return kind < LOG_ANALYSIS_KINDS ? names[kind] : NULL;
}

const char *log_analysis_cause_name(uint32_t cause)
{
	static const char *const names[LOG_ANALYSIS_CAUSES] = {
		[LOG_ANALYSIS_FREED_BEFORE] = "freed_before",
		[LOG_ANALYSIS_ADDRESS_REUSE] = "address_reuse",
		[LOG_ANALYSIS_BEFORE_LOG] = "before_log",
		[LOG_ANALYSIS_LONG_AGO] = "long_ago",
		[LOG_ANALYSIS_RESTART] = "restart",
		[LOG_ANALYSIS_OWNER_ENDED] = "owner_ended",
		[LOG_ANALYSIS_OTHER_TYPE] = "other_type",
		[LOG_ANALYSIS_OTHER_DEVICE] = "other_device",
		[LOG_ANALYSIS_OTHER_PROCESS] = "other_process",
		[LOG_ANALYSIS_WHILE_LIVE] = "while_live",
		[LOG_ANALYSIS_AT_FREE] = "at_free",
	};

	return cause < LOG_ANALYSIS_CAUSES ? names[cause] : NULL;
}
