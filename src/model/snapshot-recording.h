/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Of which recording a snapshot is; all zeros: of none, but of this machine. */

#include <stdint.h>

struct snapshot_recording {
	const char *file;          /* NULL = none; a text of the snapshot */
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME */
	uint64_t events;           /* that it has */
	uint64_t missed;           /* that it lacks; totals are exact all the same */
};
