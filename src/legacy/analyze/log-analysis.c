/* SPDX-License-Identifier: Apache-2.0 */

/* Start and end of an analysis, and its names. */

#include "legacy/analyze/log-analysis.h"

#include <stdlib.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "legacy/analyze/log-analysis-private.h"

struct log_analysis *log_analysis_new(char *const *paths)
{
	struct log_analysis *analysis = must_alloc(1, sizeof(*analysis));

	analysis->paths = paths;
	TAILQ_INIT(&analysis->freed);
	return analysis;
}

struct log_analysis *log_analysis_free(struct log_analysis *analysis)
{
	if (!analysis)
		return NULL;
	log_analysis_nodes_deinit(analysis);
	map_deinit(&analysis->process_numbers);
	map_deinit(&analysis->site_numbers);
	map_deinit(&analysis->finding_places);
	map_deinit(&analysis->finding_sizes);
	map_deinit(&analysis->finding_numbers);
	for (size_t i = 0; i < ARRAY_SIZE(analysis->devices); i++)
		free(analysis->devices[i]);
	for (size_t i = 0; i < analysis->process_count; i++)
		free(analysis->processes[i]);
	for (size_t i = 0; i < analysis->site_count; i++)
		free(analysis->sites[i]);
	free(analysis->processes);
	free(analysis->sites);
	free(analysis->findings);
	free(analysis->leaks);
	free(analysis->reports);
	pool_deinit(&analysis->texts);
	free(analysis);
	return NULL;
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
		[LOG_ANALYSIS_REPORTED] = "reported",
	};

	return cause < LOG_ANALYSIS_CAUSES ? names[cause] : NULL;
}
