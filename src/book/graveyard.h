/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last 4096 frees of a shard: a FIFO in the book and a private hash over it, so that a free of
 * nothing can be told from a free of something that was freed before, in O(1). A bucket holds the
 * number of its youngest grave, each grave the number of the next older one of its bucket. Numbers only
 * fall along a chain, so the first one that is too old ends it and nothing is ever unlinked.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/layout.h"

struct graveyard {
	struct book_grave *graves; /* in the book; NULL = there was no room for a graveyard */
	uint64_t *published;       /* shard page's count, written after the grave */
	uint64_t count;
	uint32_t *
		buckets; /* private, BOOK_GRAVES of them: 1 + low bits of a grave's number, 0 = none */
	uint32_t *older; /* private, BOOK_GRAVES of them: likewise */
	uint64_t room;   /* graves whose memory is reserved */
};

/* Bury; the memory of grave count % 4096 must be reserved. @hash is index_hash() of the address. */
void graveyard_bury(struct graveyard *yard, uint64_t hash, const struct book_grave *grave);

/* The youngest grave with that key, @type may be INDEX_ANY. NULL = none. */
const struct book_grave *graveyard_find(const struct graveyard *yard, uint64_t hash,
					uint64_t address, uint32_t type);
