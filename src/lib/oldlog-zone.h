/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Local time for the old logs, without libc's conversions, which take a lock: a call may come from a signal
 * handler. So they are asked once, at the start, for how far local time is ahead and for when that will
 * change in the next four years, which takes a millisecond. Later it stays as it was at the end of them.
 */

#include <stdint.h>

#define OLDLOG_ZONE_DAYS 1461u
#define OLDLOG_ZONE_CHANGES 16u /* two a year are usual, and four where Ramadan is left out */

struct oldlog_zone_change {
	int64_t from; /* seconds since 1970 */
	int64_t east; /* seconds that local time is ahead from then on */
};

struct oldlog_zone {
	int64_t east; /* before the first change */
	uint32_t count;
	struct oldlog_zone_change changes[OLDLOG_ZONE_CHANGES];
};

/* Where locks may be taken. */
void oldlog_zone_learn(struct oldlog_zone *zone, int64_t now);

/* @seconds since 1970 as the same time of day in UTC. */
int64_t oldlog_zone_local(const struct oldlog_zone *zone, int64_t seconds);
