/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What has changed within the last hour: one entry a minute of a machine's totals, the oldest of
 * which the present is compared with. Times are of CLOCK_MONOTONIC.
 */

#include <stdbool.h>
#include <stdint.h>

#define LAST_HOUR_ENTRIES 61u /* one more than minutes, so that they span the hour */

struct last_hour_entry {
	uint64_t time_ns;
	uint64_t bytes;
	uint64_t incidents; /* since the start */
};

struct last_hour {
	struct last_hour_entry entries[LAST_HOUR_ENTRIES]; /* a ring */
	uint32_t first, count;
	bool is_full; /* an entry was dropped: what is known does not reach back to the start */
};

struct last_hour_change {
	uint64_t over_ns; /* since when; 0 = nothing is known yet */
	int64_t bytes;
	uint64_t incidents;
};

/* Takes the totals of now. Those of the same minute as an earlier entry are not kept. */
void last_hour_put(struct last_hour *hour, const struct last_hour_entry *now);

/* How the totals of now differ from those of an hour ago, or of the start if that is later. */
void last_hour_change(const struct last_hour *hour, const struct last_hour_entry *now,
		      struct last_hour_change *ret_change);
