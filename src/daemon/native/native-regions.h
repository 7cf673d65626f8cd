/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal's regions report, and which processes have cards open, for clients that may not read
 * that: totals are public, and so are the processes behind them. Runs in the worker's thread.
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

/* Adds a packet for each card that a process has open, tracked or not; see NATIVE_OPENERS. */
int native_openers_put(const struct native_hooks *hooks, uint64_t came_ns,
		       struct native_answer *answer);
