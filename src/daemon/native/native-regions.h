/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal's regions report, for clients that may not read them: totals are public. Runs in
 * the worker's thread.
 */

#include <stdint.h>

struct native_answer;
struct native_hooks;

/*
 * Adds a packet for each row of a region, as of @came_ns (CLOCK_MONOTONIC) or later. 0, -EACCES if
 * there are regions that the daemon may not read either, or another negative errno.
 */
int native_regions_put(const struct native_hooks *hooks, uint64_t came_ns,
		       struct native_answer *answer);
