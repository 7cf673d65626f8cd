/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last 4096 frees of a shard: a FIFO in the book and a private hash over it, so that a double
 * free is distinguished from an unknown free in O(1). A bucket holds the number of its youngest
 * grave, and each grave the number of the next older one in its bucket. Numbers only decrease along
 * a chain, so the first one that is too old ends it and nothing is ever unlinked.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

struct graveyard {
	struct book_grave *graves; /* in the book; NULL = no room for a graveyard */
	uint64_t *published;       /* shard page's count, written after the grave */
	uint64_t count;
	uint64_t room; /* graves whose memory is reserved */
	/* Private, BOOK_GRAVES of each: 1 + low bits of a grave's number, 0 = none. */
	uint32_t *buckets;
	uint32_t *older;
};

struct index_key;

/* The youngest grave with that key; its type and space may be INDEX_ANY. NULL = none. */
const struct book_grave *graveyard_find(const struct graveyard *yard, const struct index_key *key);

/* Makes the private hash again from the graves in the book. */
void graveyard_relink(struct graveyard *yard);

/*
 * Numbers are kept in 32 bits: only differences below 4096 matter, so wrapping is harmless. The one
 * grave in four billion whose link would be 0 merely ends its chain early.
 */
static inline uint32_t graveyard_link(uint64_t number)
{
	return (uint32_t)(number + 1);
}

static inline void graveyard_chain(struct graveyard *yard, uint64_t hash, uint64_t number)
{
	uint32_t bucket = (uint32_t)(hash >> 32) % BOOK_GRAVES;

	yard->older[(uint32_t)number % BOOK_GRAVES] = yard->buckets[bucket];
	yard->buckets[bucket] = graveyard_link(number);
}

/*
 * Bury; the memory of grave count % 4096 must be reserved. @hash is index_hash() of the address in
 * space 0, whichever space it was in: a free that names no space asks for all of them.
 */
static inline void graveyard_bury(struct graveyard *yard, uint64_t hash,
				  const struct book_grave *grave)
{
	uint64_t number = yard->count;
	uint32_t place = (uint32_t)number % BOOK_GRAVES;

	yard->graves[place] = *grave;
	graveyard_chain(yard, hash, number);
	yard->count = number + 1;
	__atomic_store_n(yard->published, number + 1, __ATOMIC_RELEASE);
	/*
	 * Eight graves ahead is early enough for the line to arrive; the 32 graveyards of a mesh do
	 * not fit into any cache.
	 */
	__builtin_prefetch(&yard->graves[(place + 8) % BOOK_GRAVES], 1);
}
