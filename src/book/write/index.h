/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The private index of a shard: from (address, type, space) to the slot of its record. Linear hashing
 * with buckets of one cache line (twelve tags, twelve slots): one bucket is split for every few
 * inserts, so no insert ever waits for a whole table to be copied, and a lookup touches one line of
 * the index and one record. The hash leaves out the type, so that a free without a type finds all
 * candidates of a space in one bucket. It has the space, because the allocators of a device hand out
 * the same addresses.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/hash.h"
#include "book/format/layout.h"
#include "book/write/records.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define INDEX_WIDTH 12u
#define INDEX_LOAD 7u         /* mean entries per bucket: 9.1 bytes per live buffer */
#define INDEX_FIRST 32u       /* buckets that lie in the shard's own page */
#define INDEX_HOME 16u        /* of these, in the first part of home; the rest are for spills */
#define INDEX_PARTS 24u       /* each twice the size of the one before */
#define INDEX_NONE UINT32_MAX /* no such slot */
#define INDEX_ANY UINT32_MAX  /* any type, or any space */

/* What makes a live record unique on its device. */
struct index_key {
	uint64_t address;
	uint32_t type;
	uint32_t space;
};

struct index_bucket {
	uint8_t tags[INDEX_WIDTH]; /* 0 = empty */
	uint32_t overflow;         /* 1 + spill bucket, 0 = none */
	uint32_t slots[INDEX_WIDTH];
} __attribute__((aligned(CACHE_LINE)));

_Static_assert(sizeof(struct index_bucket) == CACHE_LINE, "a bucket is a cache line");

/* Buckets by number, in parts that never move. */
struct index_parts {
	struct index_bucket *part[INDEX_PARTS];
};

/* Both in one word, because a lookup starts before the lock is taken. */
union index_shape {
	struct {
		uint32_t mask;    /* 2^level - 1 */
		uint32_t buckets; /* mask < buckets - 1 <= 2 * mask + 1 */
	};
	uint64_t word;
};

struct index {
	union {
		struct {
			uint32_t mask;
			uint32_t buckets;
		};
		union index_shape shape;
	};
	uint32_t entries;
	uint32_t easy; /* with fewer entries than this, index_prepare() has nothing to do */
	struct index_parts home;
	struct index_parts spill;
	uint32_t spills;     /* spill buckets ever made */
	uint32_t spill_free; /* 1 + first free spill bucket, linked through overflow */
};

/* The home bucket of a hash, valid while the index has that shape. */
struct index_place {
	uint64_t hash;
	struct index_bucket *bucket;
	union index_shape shape;
};

/* Where an entry was found. */
struct index_spot {
	struct index_bucket *home;
	struct index_bucket *bucket; /* the home bucket, or a spill bucket of its chain */
	uint32_t at;
	uint32_t slot; /* INDEX_NONE: not found */
};

/* @first: INDEX_FIRST zeroed buckets that live as long as the index. */
void index_init(struct index *index, struct index_bucket *first);
void index_deinit(struct index *index);

/* No entries; shape and memory stay, because other threads look without the lock. */
void index_clear(struct index *index);

/* Memory for @entries in all, so that index_prepare() needs none. False: only for some. */
bool index_reserve(struct index *index, uint64_t entries);

/* The slow paths of index_find_at(), index_prepare(), index_insert_at() and index_remove_at(). */
struct index_spot index_find_far(const struct index *index, const struct records *records,
				 struct index_bucket *home, uint64_t hash, struct index_key key);
bool index_prepare_slow(struct index *index, const struct records *records);
void index_put(struct index *index, struct index_bucket *bucket, uint8_t tag, uint32_t slot);
void index_tidy(struct index *index, struct index_bucket *home, struct index_bucket *bucket,
		uint32_t at);

/* The entry must not exist yet; index_prepare() must have returned true. */
void index_insert(struct index *index, uint64_t hash, uint32_t slot);

/* Slots of all types that live at @address in @space; returns how many, at most BOOK_TYPES. */
uint32_t index_find_all(const struct index *index, const struct records *records, uint64_t address,
			uint32_t space, uint32_t ret_slots[BOOK_TYPES]);

static inline uint64_t index_hash(uint64_t address, uint32_t space)
{
	return hash_u64(address ^ (uint64_t)space << (64 - 10));
}

static inline uint8_t index_tag(uint64_t hash)
{
	return (uint8_t)(hash >> 56 | 1);
}

/* Part k holds INDEX_HOME << k buckets: the top bit of number + INDEX_HOME selects k. */
static inline struct index_bucket *index_parts_at(const struct index_parts *parts, uint32_t number)
{
	uint32_t biased = number + INDEX_HOME;
	uint32_t k = 31 - (uint32_t)__builtin_clz(biased) - (uint32_t)__builtin_ctz(INDEX_HOME);

	return parts->part[k] + (biased - (INDEX_HOME << k));
}

static inline struct index_bucket *index_bucket_in(const struct index *index,
						   union index_shape shape, uint64_t hash)
{
	uint32_t number = (uint32_t)hash & (2 * shape.mask + 1);

	if (number >= shape.buckets)
		number &= shape.mask;
	return index_parts_at(&index->home, number);
}

static inline struct index_bucket *index_bucket_of(const struct index *index, uint64_t hash)
{
	return index_bucket_in(index, index->shape, hash);
}

/* One bit for each of the twelve tags that equals @tag. */
static inline uint32_t index_matches(const struct index_bucket *bucket, uint8_t tag)
{
#if defined(__SSE2__)
	__m128i line = _mm_load_si128((const __m128i *)(const void *)bucket);
	/*
	 * Not _mm_set1_epi8(): the compiler may store the byte and load four, which waits until all
	 * stores before it have reached the cache.
	 */
	__m128i same = _mm_cmpeq_epi8(line, _mm_set1_epi32((int)(tag * 0x01010101u)));

	return (uint32_t)_mm_movemask_epi8(same) & 0xfffu;
#else
	uint32_t matches = 0;

	for (uint32_t i = 0; i < INDEX_WIDTH; i++)
		matches |= (uint32_t)(bucket->tags[i] == tag) << i;
	return matches;
#endif
}

static inline bool index_is(const struct book_record *record, struct index_key key)
{
	return record->address == key.address && book_meta_type(record->meta) == key.type &&
	       book_space(record->thread_space) == key.space;
}

static inline struct index_key index_key_of(const struct book_record *record)
{
	return (struct index_key){record->address, book_meta_type(record->meta),
				  book_space(record->thread_space)};
}

/*
 * Where to look for a hash. Needs no lock, and prefetches the line so that it has arrived when the
 * lock is taken. The result is valid only after index_settle() was called with the lock held.
 */
static inline struct index_place index_look(const struct index *index, uint64_t hash)
{
	struct index_place place = {.hash = hash};

	/*
	 * Pairs with the release in index_split(): whoever sees the shape also sees the new
	 * bucket's part.
	 */
	place.shape.word = __atomic_load_n(&index->shape.word, __ATOMIC_ACQUIRE);
	place.bucket = index_bucket_in(index, place.shape, hash);
	__builtin_prefetch(place.bucket, 1);
	return place;
}

/* The bucket of the place, looked up again if the index has grown meanwhile. */
static inline struct index_bucket *index_settle(const struct index *index, struct index_place place)
{
	if (likely(place.shape.word == index->shape.word))
		return place.bucket;
	return index_bucket_of(index, place.hash);
}

/*
 * The entry of the live record with that key; @home is the home bucket of the hash. Nearly always the
 * first entry with that tag is the one, or there is none and the bucket has not spilled; a loop here
 * would cost callers their registers.
 */
static inline struct index_spot index_find_at(const struct index *index,
					      const struct records *records,
					      struct index_bucket *home, uint64_t hash,
					      struct index_key key)
{
	uint32_t matches = index_matches(home, index_tag(hash));

	if (matches) {
		uint32_t at = (uint32_t)__builtin_ctz(matches);
		uint32_t slot = home->slots[at];

		if (likely(index_is(records_at(records, slot), key)))
			return (struct index_spot){home, home, at, slot};
	} else if (likely(!home->overflow)) {
		return (struct index_spot){home, home, 0, INDEX_NONE};
	}
	return index_find_far(index, records, home, hash, key);
}

/* The slot of the live record with that key, or INDEX_NONE. */
static inline uint32_t index_find(const struct index *index, const struct records *records,
				  uint64_t hash, struct index_key key)
{
	return index_find_at(index, records, index_bucket_of(index, hash), hash, key).slot;
}

/*
 * Makes room for one more entry; false if memory cannot be allocated (the caller then loses the
 * record).
 */
static inline bool index_prepare(struct index *index, const struct records *records)
{
	if (likely(index->entries < index->easy))
		return true;
	return index_prepare_slow(index, records);
}

/* For callers that already have the bucket or the spot. */
static inline void index_insert_at(struct index *index, struct index_bucket *bucket, uint64_t hash,
				   uint32_t slot)
{
	uint32_t empty = index_matches(bucket, 0);

	index->entries++;
	if (likely(empty)) {
		uint32_t at = (uint32_t)__builtin_ctz(empty);

		bucket->tags[at] = index_tag(hash);
		bucket->slots[at] = slot;
		return;
	}
	index_put(index, bucket, index_tag(hash), slot);
}

static inline void index_remove_at(struct index *index, struct index_spot spot)
{
	spot.bucket->tags[spot.at] = 0;
	index->entries--;
	if (unlikely(spot.home->overflow))
		index_tidy(index, spot.home, spot.bucket, spot.at);
}
