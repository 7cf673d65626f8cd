/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the driver keeps for each process, for clients that may not read its file: like totals, it is
 * public. Runs in the worker's thread.
 */

#include <stdint.h>

struct native_answer;
struct native_hooks;

/* Adds packets as of @came_ns (CLOCK_MONOTONIC) or later. 0 or a negative errno. */
int native_driver_memory_put(const struct native_hooks *hooks, uint64_t came_ns,
			     struct native_answer *answer);
