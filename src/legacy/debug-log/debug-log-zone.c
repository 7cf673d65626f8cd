/* SPDX-License-Identifier: Apache-2.0 */

/* Checks the UTC offset of each day, and finds the second of a change by bisection. */

#include "legacy/debug-log/debug-log-zone.h"

#include <time.h>

#define ZONE_DAY 86400

static int64_t zone_east(int64_t seconds)
{
	time_t when = seconds;
	struct tm local;

	return localtime_r(&when, &local) ? local.tm_gmtoff : 0;
}

/* The first second after @before, up to @after, with a different offset. */
static int64_t zone_change(int64_t before, int64_t after, int64_t east)
{
	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;

		if (zone_east(middle) == east)
			before = middle;
		else
			after = middle;
	}
	return after;
}

void debug_log_zone_learn(struct debug_log_zone *zone, int64_t now)
{
	int64_t east = zone_east(now);

	*zone = (struct debug_log_zone){.east = east};
	for (uint32_t i = 0; i < DEBUG_LOG_ZONE_DAYS && zone->count < DEBUG_LOG_ZONE_CHANGES; i++) {
		int64_t start = now + (int64_t)i * ZONE_DAY;
		int64_t next = zone_east(start + ZONE_DAY);

		if (next == east)
			continue;
		zone->changes[zone->count++] = (struct debug_log_zone_change){
			.from = zone_change(start, start + ZONE_DAY, east),
			.east = next,
		};
		east = next;
	}
}

int64_t debug_log_zone_local(const struct debug_log_zone *zone, int64_t seconds)
{
	int64_t east = zone->east;

	for (uint32_t i = 0; i < zone->count && seconds >= zone->changes[i].from; i++)
		east = zone->changes[i].east;
	return seconds + east;
}
