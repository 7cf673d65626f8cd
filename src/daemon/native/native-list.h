/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of all processes with a book, as packets. Their totals are those of the shared picture. */

#include <stdint.h>

struct access_peer;
struct native_answer;
struct native_hooks;

/*
 * Adds a packet, or several, for each book. @want: NATIVE_WANT_...; @came_ns: CLOCK_MONOTONIC of the
 * question. In the worker's thread. 0 or a negative errno.
 */
int native_list_put(const struct native_hooks *hooks, uint32_t want, uint64_t came_ns,
		    const struct access_peer *asker, struct native_answer *answer);
