/* SPDX-License-Identifier: Apache-2.0 */

/* Growing and changing the index; lookup is in the header. */

#include "book/write/index.h"

#include "base/process/private.h"

static size_t index_part_size(uint32_t k)
{
	return ((size_t)INDEX_HOME << k) * sizeof(struct index_bucket);
}

/* Makes sure that bucket @number has memory. */
static bool index_parts_grow(struct index_parts *parts, uint32_t number)
{
	uint32_t biased = number + INDEX_HOME;
	uint32_t k = 31 - (uint32_t)__builtin_clz(biased) - (uint32_t)__builtin_ctz(INDEX_HOME);

	if (likely(parts->part[k]))
		return true;
	parts->part[k] = private_map(index_part_size(k));
	return parts->part[k] != NULL;
}

void index_init(struct index *index, struct index_bucket *first)
{
	*index = (struct index){.mask = INDEX_HOME - 1, .buckets = INDEX_HOME};
	index->home.part[0] = first;
	index->spill.part[0] = first + INDEX_HOME;
}

void index_deinit(struct index *index)
{
	/* The first part of each was provided by the caller. */
	for (uint32_t k = 1; k < INDEX_PARTS; k++) {
		private_unmap(index->home.part[k], index_part_size(k));
		private_unmap(index->spill.part[k], index_part_size(k));
	}
	*index = (struct index){0};
}

void index_clear(struct index *index)
{
	for (uint32_t i = 0; i < index->buckets; i++)
		*index_parts_at(&index->home, i) = (struct index_bucket){0};
	for (uint32_t i = 0; i < index->spills; i++)
		*index_parts_at(&index->spill, i) = (struct index_bucket){0};
	index->entries = 0;
	index->easy = 0;
	index->spills = 0;
	index->spill_free = 0;
}

/* All parts up to the one of bucket @number. */
static bool index_parts_reserve(struct index_parts *parts, uint64_t number)
{
	for (uint32_t k = 0; k < INDEX_PARTS; k++) {
		uint64_t first = ((uint64_t)INDEX_HOME << k) - INDEX_HOME;

		if (first > number)
			return true;
		if (!index_parts_grow(parts, (uint32_t)first))
			return false;
	}
	return true;
}

bool index_reserve(struct index *index, uint64_t entries)
{
	uint64_t buckets = entries / INDEX_LOAD + 1;

	/* With this load one bucket in fifteen overflows. */
	return index_parts_reserve(&index->home, buckets) &&
	       index_parts_reserve(&index->spill, index->spills + buckets / 4 + 2);
}

/* A fresh spill bucket as 1 + its number; index_prepare() has made room for it. */
static uint32_t index_spill_take(struct index *index)
{
	uint32_t link = index->spill_free;

	if (link) {
		struct index_bucket *bucket = index_parts_at(&index->spill, link - 1);

		index->spill_free = bucket->overflow;
		*bucket = (struct index_bucket){0};
		return link;
	}
	index->easy = 0; /* one spare bucket fewer */
	return ++index->spills;
}

void index_put(struct index *index, struct index_bucket *bucket, uint8_t tag, uint32_t slot)
{
	for (;;) {
		uint32_t empty = index_matches(bucket, 0);

		if (empty) {
			uint32_t i = (uint32_t)__builtin_ctz(empty);

			bucket->tags[i] = tag;
			bucket->slots[i] = slot;
			return;
		}
		if (!bucket->overflow)
			bucket->overflow = index_spill_take(index);
		bucket = index_parts_at(&index->spill, bucket->overflow - 1);
	}
}

/*
 * Splits the next bucket in turn. The entries of its whole chain are inserted again, each into the
 * old bucket or the new one. The chain's spill buckets are freed first, so no more can be needed
 * than there were.
 */
static void index_split(struct index *index, const struct records *records)
{
	uint32_t from = index->buckets - index->mask - 1;
	struct index_bucket *bucket = index_parts_at(&index->home, from);
	struct index_bucket chain = *bucket;
	union index_shape grown = {.mask = index->mask, .buckets = index->buckets + 1};

	*bucket = (struct index_bucket){0};
	if (grown.buckets == 2 * (grown.mask + 1))
		grown.mask = 2 * grown.mask + 1;
	/* Pairs with the acquire in index_look(). */
	__atomic_store_n(&index->shape.word, grown.word, __ATOMIC_RELEASE);

	for (;;) {
		uint32_t link = chain.overflow;

		for (uint32_t i = 0; i < INDEX_WIDTH; i++) {
			const struct book_record *record;
			uint64_t hash;

			if (!chain.tags[i])
				continue;
			record = records_at(records, chain.slots[i]);
			hash = index_hash(record->address, book_space(record->thread_space));
			index_put(index, index_bucket_of(index, hash), chain.tags[i],
				  chain.slots[i]);
		}
		if (!link)
			return;
		bucket = index_parts_at(&index->spill, link - 1);
		chain = *bucket;
		bucket->overflow = index->spill_free;
		index->spill_free = link;
	}
}

bool index_prepare_slow(struct index *index, const struct records *records)
{
	/* One insert and one split can each need a spill bucket: keep two spare. */
	if (!index_parts_grow(&index->spill, index->spills + 1))
		return false;
	if (index->entries >= index->buckets * INDEX_LOAD) {
		if (!index_parts_grow(&index->home, index->buckets))
			return true; /* chains grow instead: slower but correct */
		index_split(index, records);
		if (!index_parts_grow(&index->spill, index->spills + 1))
			return false;
	}
	index->easy = index->buckets * INDEX_LOAD;
	return true;
}

void index_insert(struct index *index, uint64_t hash, uint32_t slot)
{
	index_put(index, index_bucket_of(index, hash), index_tag(hash), slot);
	index->entries++;
}

/*
 * An entry was removed from a chain: the chain's last entry takes its place, and a spill bucket
 * that becomes empty is freed. Otherwise every bucket that ever overflowed would keep its spill
 * bucket, and sooner or later every bucket has overflowed.
 */
void index_tidy(struct index *index, struct index_bucket *home, struct index_bucket *bucket,
		uint32_t at)
{
	struct index_bucket *before = home;
	struct index_bucket *last = index_parts_at(&index->spill, before->overflow - 1);
	uint32_t used;

	while (last->overflow) {
		before = last;
		last = index_parts_at(&index->spill, last->overflow - 1);
	}
	used = ~index_matches(last, 0) & ((1u << INDEX_WIDTH) - 1);
	if (last != bucket && used) {
		uint32_t from = (uint32_t)__builtin_ctz(used);

		bucket->tags[at] = last->tags[from];
		bucket->slots[at] = last->slots[from];
		last->tags[from] = 0;
		used &= used - 1;
	}
	if (!used) {
		last->overflow = index->spill_free;
		index->spill_free = before->overflow;
		before->overflow = 0;
	}
}

struct index_spot index_find_far(const struct index *index, const struct records *records,
				 struct index_bucket *home, uint64_t hash, struct index_key key)
{
	struct index_bucket *bucket = home;
	uint8_t tag = index_tag(hash);

	for (;;) {
		for (uint32_t matches = index_matches(bucket, tag); matches;
		     matches &= matches - 1) {
			uint32_t at = (uint32_t)__builtin_ctz(matches);
			uint32_t slot = bucket->slots[at];

			if (index_is(records_at(records, slot), key))
				return (struct index_spot){home, bucket, at, slot};
		}
		if (!bucket->overflow)
			return (struct index_spot){home, bucket, 0, INDEX_NONE};
		bucket = index_parts_at(&index->spill, bucket->overflow - 1);
	}
}

uint32_t index_find_all(const struct index *index, const struct records *records, uint64_t address,
			uint32_t space, uint32_t ret_slots[BOOK_TYPES])
{
	uint64_t hash = index_hash(address, space);
	const struct index_bucket *bucket = index_bucket_of(index, hash);
	uint8_t tag = index_tag(hash);
	uint32_t found = 0;

	for (;;) {
		for (uint32_t matches = index_matches(bucket, tag); matches;
		     matches &= matches - 1) {
			uint32_t slot = bucket->slots[__builtin_ctz(matches)];
			const struct book_record *record = records_at(records, slot);

			if (record->address == address &&
			    book_space(record->thread_space) == space && found < BOOK_TYPES)
				ret_slots[found++] = slot;
		}
		if (!bucket->overflow)
			return found;
		bucket = index_parts_at(&index->spill, bucket->overflow - 1);
	}
}
