/* SPDX-License-Identifier: Apache-2.0 */

/* The graveyard; the header tells how it works. */

#include "book/graveyard.h"

#include "base/bits.h"
#include "book/index.h"

/* Numbers are kept in 32 bits: only differences below 4096 matter, so wrapping does no harm. The one
 * grave in four billion whose link would be 0 merely ends its chain early. */
static uint32_t graveyard_link(uint64_t number)
{
	return (uint32_t)(number + 1);
}

void graveyard_bury(struct graveyard *yard, uint64_t hash, const struct book_grave *grave)
{
	uint64_t number = yard->count;
	uint32_t bucket = (uint32_t)(hash >> 32) % BOOK_GRAVES;
	uint32_t place = (uint32_t)number % BOOK_GRAVES;

	yard->graves[place] = *grave;
	yard->older[place] = yard->buckets[bucket];
	yard->buckets[bucket] = graveyard_link(number);
	yard->count = number + 1;
	__atomic_store_n(yard->published, yard->count, __ATOMIC_RELEASE);
}

const struct book_grave *graveyard_find(const struct graveyard *yard, uint64_t hash,
					uint64_t address, uint32_t type)
{
	uint32_t bucket = (uint32_t)(hash >> 32) % BOOK_GRAVES;
	uint32_t last = 0;
	uint32_t link;

	if (!yard->graves || !yard->count)
		return NULL;
	for (link = yard->buckets[bucket]; link;) {
		uint32_t age = graveyard_link(yard->count) - link; /* 1 = the youngest */
		uint32_t place = (link - 1) % BOOK_GRAVES;
		const struct book_grave *grave = &yard->graves[place];

		if (age > BOOK_GRAVES || age <= last)
			return NULL;
		if (grave->address == address &&
		    (type == INDEX_ANY || book_meta_type(grave->meta) == type))
			return grave;
		last = age;
		link = yard->older[place];
	}
	return NULL;
}
