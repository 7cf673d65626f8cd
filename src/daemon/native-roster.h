/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The list of all processes as packets. Totals are the same for everybody, so they are read once for all
 * who were waiting: a list that was begun after a question had come answers that question, too. Lives
 * in the worker's thread.
 */

#include <stdint.h>

struct access_peer;
struct native_answer;
struct native_roster;
struct roster;

struct native_roster *native_roster_new(void);
struct native_roster *native_roster_free(struct native_roster *self);

/*
 * Adds a packet, or several, for each book in @roster. @want: NATIVE_WANT_...; @came_ns: CLOCK_MONOTONIC
 * of the question. 0 or a negative errno.
 */
int native_roster_put(struct native_roster *self, struct roster *roster, uint32_t want,
		      uint64_t came_ns, const struct access_peer *asker,
		      struct native_answer *answer);
