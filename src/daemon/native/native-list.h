/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of all processes with a book, as packets. Totals come from the shared snapshot. */

#include <stdint.h>

struct access_peer;
struct native_answer;
struct native_hooks;
struct native_request;

/*
 * Adds one or more packets for each book. @came_ns: when the request arrived
 * (CLOCK_MONOTONIC). Runs in the worker's thread. 0 or a negative errno.
 */
int native_list_put(const struct native_hooks *hooks, const struct native_request *request,
		    uint64_t came_ns, const struct access_peer *asker,
		    struct native_answer *answer);
