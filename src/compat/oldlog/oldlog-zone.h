/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Local time for the old logs, without libc's conversions, which take a lock: a call may come from
 * a signal handler. So libc is asked once at the start for the UTC offset and its changes in the
 * next four years, which takes a millisecond. After that the last offset stays.
 */

#include <stdint.h>

#define OLDLOG_ZONE_DAYS 1461u
#define OLDLOG_ZONE_CHANGES 16u /* usually two a year, four where DST pauses for Ramadan */

struct oldlog_zone_change {
	int64_t from; /* seconds since 1970 */
	int64_t east; /* UTC offset in seconds from then on */
};

struct oldlog_zone {
	int64_t east; /* before the first change */
	uint32_t count;
	struct oldlog_zone_change changes[OLDLOG_ZONE_CHANGES];
};

/* Only where locks may be taken. */
void oldlog_zone_learn(struct oldlog_zone *zone, int64_t now);

/* @seconds since 1970, shifted so that as UTC it shows local time. */
int64_t oldlog_zone_local(const struct oldlog_zone *zone, int64_t seconds);
