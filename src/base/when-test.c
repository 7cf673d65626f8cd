/* SPDX-License-Identifier: Apache-2.0 */

/* Times as people write them. */

#include "base/when.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/testing/unit.h"

/* 2026-11-17 12:00:00 UTC, and a zone without changes of the clock. */
#define NOON (UINT64_C(1794916800) * NS_PER_S)
#define HOUR (3600 * NS_PER_S)

static uint64_t since(const char *text)
{
	uint64_t ns = 0;

	setenv("TZ", "UTC", 1);
	tzset();
	assert(when_since(text, NOON, &ns) == 0);
	return ns;
}

UNIT(durations_are_before_now)
{
	assert(since("2h") == NOON - 2 * HOUR && since("30min") == NOON - HOUR / 2);
	assert(since("1d") == NOON - 24 * HOUR && since("2m30s") == NOON - 150 * NS_PER_S);
	assert(since("1.5h") == NOON - 3 * HOUR / 2);
}

UNIT(a_time_of_day_is_the_last_one)
{
	assert(since("11:00") == NOON - HOUR && since("12:00") == NOON);
	assert(since("13:00") == NOON - 23 * HOUR);
	assert(since("11:59:59") == NOON - NS_PER_S);
}

UNIT(dates_are_local)
{
	assert(since("2026-11-17") == NOON - 12 * HOUR);
	assert(since("2026-11-17 11:00") == NOON - HOUR);
	assert(since("2026-11-16T12:00:30") == NOON - 24 * HOUR + 30 * NS_PER_S);
}

UNIT(a_number_alone_is_ns_since_1970)
{
	assert(since("0") == 0 && since("1794916800000000000") == NOON);
}

UNIT(other_texts_are_no_times)
{
	static const char *const texts[] = {"",      "yesterday", "2x",         "25:00",
					    "12:60", "12:00x",    "2026-13-01", "26-11-17",
					    "-2h",   "1e3s",      "2026-11-17x"};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert(when_since(texts[i], NOON, &ns) == -EINVAL);
}
