/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers for things that are met again and again, from 1 on in the order in which they first appear. */

#include <stddef.h>
#include <stdint.h>

struct export_index_slot;

struct export_index {
	struct export_index_slot *slots; /* open addressing */
	size_t capacity;
	uint32_t count; /* the last number that was given */
	uint64_t seed;  /* secret: lines and names come from processes that may be hostile */
};

#define EXPORT_INDEX_NULL ((struct export_index){.slots = NULL})

/* The number of the pair; it is new if that is the count after the call and not before. 0 or -ENOMEM. */
int export_index_find(struct export_index *index, uint64_t a, uint64_t b, uint32_t *ret_number);

void export_index_deinit(struct export_index *index);
