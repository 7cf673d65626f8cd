/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Of which moment of the past a snapshot is; all zeros: of none, but of now. */

#include <stdint.h>

enum snapshot_moment_kind {
	SNAPSHOT_NOW = 0,
	SNAPSHOT_MOMENT_EXACT = 1, /* from the flight recorder: everything is as it was */
	SNAPSHOT_MOMENT_SUMS = 2,  /* from the history: bytes and buffers, of about that second */
};

/* How far the past reaches. CLOCK_REALTIME; 0 = there is none. */
struct snapshot_reach {
	uint64_t exact_from_ns;
	uint64_t sums_from_ns;
};

struct snapshot_moment {
	uint32_t kind; /* enum snapshot_moment_kind */
	uint64_t asked_ns;
	struct snapshot_reach reach;
};
