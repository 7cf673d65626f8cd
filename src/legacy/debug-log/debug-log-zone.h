/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Local time for the old logs, without libc's conversions, which take a lock: a call may come from
 * a signal handler. So libc is asked once at the start for the UTC offset and its changes in the
 * next four years, which takes a millisecond. After that the last offset stays.
 */

#include <stdint.h>

#define DEBUG_LOG_ZONE_DAYS 1461u
#define DEBUG_LOG_ZONE_CHANGES 16u /* usually two a year, four where DST pauses for Ramadan */

struct debug_log_zone_change {
	int64_t from; /* seconds since 1970 */
	int64_t east; /* UTC offset in seconds from then on */
};

struct debug_log_zone {
	int64_t east; /* before the first change */
	uint32_t count;
	struct debug_log_zone_change changes[DEBUG_LOG_ZONE_CHANGES];
};

/* Only where locks may be taken. */
void debug_log_zone_learn(struct debug_log_zone *zone, int64_t now);

/* @seconds since 1970, shifted so that as UTC it shows local time. */
int64_t debug_log_zone_local(const struct debug_log_zone *zone, int64_t seconds);
