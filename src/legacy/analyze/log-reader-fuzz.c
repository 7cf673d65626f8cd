/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a log, in two pieces, and the whole analysis over it: its sums must agree with its rows. */

#include <stdlib.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/analyze/log-analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct log_analysis *analysis)
{
	uint64_t leaks = 0, bytes = 0, found = 0, row_bytes = 0, row_found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(analysis->devices); i++) {
		const struct log_analysis_device *device = analysis->devices[i];

		for (size_t t = 0; device && t < LOG_ANALYSIS_TYPES; t++) {
			leaks += device->sums[t].leaks;
			bytes += device->sums[t].leaked_bytes;
			for (size_t k = 0; k < LOG_ANALYSIS_KINDS; k++)
				found += device->sums[t].found[k];
		}
	}
	for (size_t i = 0; i < analysis->leak_count; i++) {
		assert(analysis->leaks[i].refs > 0);
		row_bytes += analysis->leaks[i].size;
	}
	for (size_t i = 0; i < analysis->finding_count; i++)
		row_found += analysis->findings[i].count;
	assert(leaks == analysis->leak_count && bytes == row_bytes && found == row_found);
	assert(analysis->unlisted <= analysis->unseen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char path[] = "log", *paths[] = {path};
	struct log_analysis *analysis = log_analysis_new(paths);
	struct log_reader *log = log_reader_new(log_analysis_take, analysis);
	size_t half = size / 2;

	log_reader_feed(log, text, half);
	log_reader_feed(log, text + half, size - half);
	log_reader_finish(log);
	log_analysis_finish(analysis);
	check(analysis);
	log_reader_free(log);
	log_analysis_free(analysis);
	return 0;
}
