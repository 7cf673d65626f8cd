/* SPDX-License-Identifier: Apache-2.0 */

/* Local time compared with libc's, around each change. */

#include "legacy/debug-log/debug-log-zone.h"

#include <stdlib.h>
#include <time.h>

#include "base/testing/unit.h"

#define START INT64_C(1700000000) /* in November 2023 */

static struct debug_log_zone zone;

static void learn(const char *name)
{
	assert(setenv("TZ", name, 1) == 0);
	tzset();
	debug_log_zone_learn(&zone, START);
}

static void same(int64_t seconds)
{
	time_t when = seconds;
	struct tm local;

	assert(localtime_r(&when, &local));
	assert(debug_log_zone_local(&zone, seconds) == seconds + local.tm_gmtoff);
}

static void same_always(void)
{
	for (int64_t seconds = START; seconds < START + INT64_C(1461) * 86400; seconds += 3541)
		same(seconds);
	for (uint32_t i = 0; i < zone.count; i++) {
		same(zone.changes[i].from - 1);
		same(zone.changes[i].from);
	}
}

UNIT(two_changes_a_year)
{
	learn("CET-1CEST,M3.5.0,M10.5.0/3");
	assert(zone.east == 3600 && zone.count == 8);
	/* The last Sunday of March 2024, at one o'clock UTC. */
	assert(zone.changes[0].from == 1711846800 && zone.changes[0].east == 7200);
	same_always();
	/* The southern hemisphere, and an offset that is not a whole hour. */
	learn("LHST-10:30LHDT-11,M10.1.0,M4.1.0");
	assert(zone.count == 8);
	same_always();
}

UNIT(no_change)
{
	learn("UTC0");
	assert(zone.east == 0 && zone.count == 0);
	learn("XST9:30");
	assert(zone.east == -34200 && zone.count == 0);
	same_always();
}

/* After the last day that was examined the offset stays as it was. */
UNIT(the_zone_goes_on_after_the_last_known_change)
{
	int64_t late = START + INT64_C(20) * 365 * 86400;

	learn("CET-1CEST,M3.5.0,M10.5.0/3");
	assert(debug_log_zone_local(&zone, late) == late + zone.changes[7].east);
}
