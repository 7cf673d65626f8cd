/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which of the processes' devices are the same, and their sums. Parts that join.c found to be the same
 * card are one row, whatever number the processes use; so are two without a card but with the same
 * unique id. Two with neither are one row if they have the same number, and the row says that it is
 * identified by number only; one with and one without an id are two rows.
 */

#include <stdint.h>

#include "model/snapshot.h"

struct join;
struct snapshot;

/* Fills snapshot->devices and the parts' rows, once all parts are joined. 0 or -ENOMEM. */
int merge_devices(struct snapshot *snapshot, const struct join *join);

/* Saturating sum: a process may claim any number. */
static inline uint64_t merge_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/*
 * @buffers, @used: of @more. Processes whose buffers are not counted, as those in tt-metal's regions, take
 * at least the sizes that they claim, whatever is known of the others.
 */
static inline void merge_occupied(struct snapshot_occupied *to,
				  const struct snapshot_occupied *more, uint64_t buffers,
				  uint64_t used)
{
	uint64_t rest = more->rest;

	if (!rest && !snapshot_is_occupied(more, buffers, used) && used > more->bytes)
		rest = used - more->bytes;
	to->rest = merge_add(to->rest, rest);
	to->bytes = merge_add(to->bytes, more->bytes);
	to->known = merge_add(to->known, more->known);
}

/* The bound of a sum, see enum snapshot_bound. */
uint32_t merge_bound(uint32_t a, uint32_t b);
