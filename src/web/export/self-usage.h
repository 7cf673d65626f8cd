/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process itself costs. */

#include <stdint.h>

struct self_usage {
	uint64_t cpu_ns; /* user and system, all threads */
	uint64_t resident_bytes;
	uint64_t open_fds;
	uint64_t max_fds;
};

/* What cannot be determined is 0. */
void self_usage_read(struct self_usage *ret_cost);
