/* SPDX-License-Identifier: Apache-2.0 */

/* Finding graves. */

#include "book/write/graveyard.h"

#include "base/bits.h"
#include "book/write/index.h"

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
