/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the parts of `ttmem selftest`: the known buffers, and the tools that must see them. */

#include <stdbool.h>
#include <stdint.h>

/* The known buffers: those of the old debugging script (half, two and eight MiB of L1), and one of
 * each other kind. All on device 1000, which no machine has. */
#define SELFTEST_DEVICE 1000u

struct selftest_buffer {
	uint32_t type;
	uint64_t address;
	uint64_t size;
	const char *name;
};

extern const struct selftest_buffer selftest_buffers[];
extern const unsigned int selftest_count;

/* Buffers and bytes of one type among them. */
uint64_t selftest_bytes(uint32_t type, uint64_t *ret_buffers);

/* What a check found wrong; NULL = nothing. Valid until the next check. */
typedef const char *selftest_check(uint32_t pid);

selftest_check selftest_smi, selftest_ps, selftest_list, selftest_history, selftest_incidents;
