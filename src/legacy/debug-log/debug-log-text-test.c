/* SPDX-License-Identifier: Apache-2.0 */

/* Words, numbers and dates of the old logs, compared with libc's output. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "legacy/debug-log/debug-log-text.h"

static void same_kb(uint64_t size)
{
	char got[DEBUG_LOG_TEXT_NUMBER], want[64];

	snprintf(want, sizeof(want), "%g", (double)size / 1024.0);
	assert(strcmp(debug_log_text_kb(size, got), want) == 0);
}

UNIT(kilobytes_as_a_stream_prints_them)
{
	static const uint64_t sizes[] = {
		0,          1,          10,          11,      1023,       1024,
		1025,       1536,       524288,      98304,   1023999999, 1024000000,
		1073741824, 1048575999, 12345678901, 1047552, 1048064,    (1ull << 40) - 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		same_kb(sizes[i]);
	for (uint64_t size = 0; size < 300000; size++)
		same_kb(size);
	for (uint64_t size = 1, i = 0; i < 400000; i++) {
		size = size * 6364136223846793005u + 1442695040888963407u;
		same_kb(size >> 24 >> i % 39);
	}
}

UNIT(dates_match_libc)
{
	char got[DEBUG_LOG_TEXT_NUMBER], want[64];

	for (int64_t seconds = 0; seconds < UINT32_MAX; seconds += 86400 * 13 + 12345) {
		time_t when = seconds;
		struct tm tm;

		assert(gmtime_r(&when, &tm));
		strftime(want, sizeof(want), "%Y-%m-%d %H:%M:%S", &tm);
		assert(strcmp(debug_log_text_date(seconds, got), want) == 0);
	}
	assert(strcmp(debug_log_text_date(951782400, got), "2000-02-29 00:00:00") == 0);
	assert(strcmp(debug_log_text_date(-5, got), "1970-01-01 00:00:00") == 0);
}

UNIT(filters_choose_devices_and_types)
{
	struct debug_log_filter filter;

	debug_log_text_filter(&filter, NULL, NULL);
	assert(debug_log_text_wants(&filter, 1023, TTMEM_KERNEL));
	debug_log_text_filter(&filter, "0, 7,1023", "l1,DRAM");
	assert(debug_log_text_wants(&filter, 7, TTMEM_L1));
	assert(debug_log_text_wants(&filter, 1023, TTMEM_DRAM));
	assert(debug_log_text_wants(&filter, 0, TTMEM_ANY));
	assert(!debug_log_text_wants(&filter, 1, TTMEM_L1));
	assert(!debug_log_text_wants(&filter, 7, TTMEM_L1_SMALL));
	/* An invalid device among valid ones, and alone. */
	debug_log_text_filter(&filter, "1024,3", NULL);
	assert(debug_log_text_wants(&filter, 3, 0) && !debug_log_text_wants(&filter, 4, 0));
	debug_log_text_filter(&filter, "first", "L2");
	assert(debug_log_text_wants(&filter, 3, TTMEM_TRACE));
}

UNIT(types_have_their_old_names)
{
	assert(strcmp(debug_log_text_short_type(TTMEM_DRAM), "DRAM") == 0);
	assert(strcmp(debug_log_text_short_type(TTMEM_TRACE), "OTHER") == 0);
	assert(strcmp(debug_log_text_short_type(TTMEM_ANY), "unknown") == 0);
	assert(strcmp(debug_log_text_type(TTMEM_TRACE), "TRACE") == 0);
	assert(strlen(DEBUG_LOG_TEXT_DOUBLE_LINE) == 59u * 3);
}
