/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a log, in two pieces, and the whole analysis over it: its sums must agree with its rows. */

#include <stdlib.h>

#include "base/testing/unit.h"
#include "legacy/analyze/log-analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct log_analysis_result *result)
{
	uint64_t leaks = 0, bytes = 0, found = 0, row_bytes = 0, row_found = 0;

	for (size_t i = 0; i < LOG_ANALYSIS_DEVICES; i++) {
		const struct log_analysis_device *device = result->devices[i];

		for (size_t t = 0; device && t < LOG_ANALYSIS_TYPES; t++) {
			leaks += device->sums[t].leaks;
			bytes += device->sums[t].leaked_bytes;
			for (size_t k = 0; k < LOG_ANALYSIS_KINDS; k++)
				found += device->sums[t].found[k];
		}
	}
	for (size_t i = 0; i < result->leak_count; i++) {
		assert(result->leaks[i].refs > 0);
		row_bytes += result->leaks[i].size;
	}
	for (size_t i = 0; i < result->finding_count; i++)
		row_found += result->findings[i].count;
	assert(leaks == result->leak_count && bytes == row_bytes && found == row_found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct log_analysis_result result;
	struct log_analysis *analysis;
	struct log_reader *log;
	size_t half = size / 2;

	assert(log_analysis_new(&analysis) == 0);
	assert(log_reader_new(&log, log_analysis_take, analysis) == 0);
	assert(log_reader_feed(log, text, half) == 0);
	assert(log_reader_feed(log, text + half, size - half) == 0);
	assert(log_reader_finish(log) == 0);
	assert(log_analysis_finish(analysis, &result) == 0);
	check(&result);
	log_reader_free(log);
	log_analysis_free(analysis);
	return 0;
}
