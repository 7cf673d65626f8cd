/* SPDX-License-Identifier: Apache-2.0 */

/* Finding graves. */

#include "book/write/graveyard.h"

#include <string.h>

#include "base/bits.h"
#include "book/write/index.h"

static bool graveyard_is(const struct book_grave *grave, const struct index_key *key)
{
	return grave->address == key->address &&
	       (key->type == INDEX_ANY || book_meta_type(grave->meta) == key->type) &&
	       (key->space == INDEX_ANY || book_space(grave->birth_thread_space) == key->space);
}

const struct book_grave *graveyard_find(const struct graveyard *yard, const struct index_key *key)
{
	uint32_t bucket = (uint32_t)(index_hash(key->address, 0) >> 32) % BOOK_GRAVES;
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
		if (graveyard_is(grave, key))
			return grave;
		last = age;
		link = yard->older[place];
	}
	return NULL;
}

void graveyard_relink(struct graveyard *yard)
{
	uint64_t count = *yard->published;

	yard->count = count;
	if (!yard->buckets)
		return;
	yard->older = yard->buckets + BOOK_GRAVES; /* one mapping: room_graves_grow() */
	memset(yard->buckets, 0, BOOK_GRAVES * sizeof(*yard->buckets));
	for (uint64_t n = count > BOOK_GRAVES ? count - BOOK_GRAVES : 0; n < count; n++)
		graveyard_chain(yard, index_hash(yard->graves[n % BOOK_GRAVES].address, 0), n);
}
