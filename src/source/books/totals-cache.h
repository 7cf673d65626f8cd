/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Caches what was read from a live book: which devices it has, what was declared about them, and
 * the counters of each. A book counts its changes to the first two, so that a reader with a cache
 * need not look; for the third, see idle-counters.h. The cache is optional: without memory for it,
 * or beyond the bounds, a book is simply read again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/idle-counters.h"

/* Per book; and for all of them, because a process may create many. */
#define TOTALS_CACHE_DEVICES_MAX 64u
#define TOTALS_CACHE_BYTES_MAX (48u << 20)

struct totals_cache_device {
	uint32_t device;
	struct book_device entry;
};

struct totals_cache_shard {
	uint32_t device;
	struct idle_counters known;
};

/* Both lists are in ascending order. */
struct totals_cache {
	uint64_t changes; /* the book's count when they were filled; 0 = incomplete */
	struct totals_cache_device *devices;
	size_t device_count, device_capacity;
	struct totals_cache_shard *shards;
	size_t shard_count, shard_capacity;
	size_t bytes; /* of the lists, as counted in the total of all caches */
	bool overflowed;
	bool is_narrow; /* without the devices of book-rest.h */
};

/* Whether the lists are complete for a book with this count of changes. */
bool totals_cache_is_current(const struct totals_cache *totals_cache, uint64_t changes,
			     bool is_narrow);

/*
 * Empty the lists; add to them; and once everything has been added, say which count they are for.
 */
void totals_cache_restart(struct totals_cache *totals_cache, bool is_narrow);
void totals_cache_add_device(struct totals_cache *totals_cache, uint32_t device,
			     const struct book_device *entry);
void totals_cache_add_shard(struct totals_cache *totals_cache, uint32_t device,
			    const struct idle_counters *known);
void totals_cache_complete(struct totals_cache *totals_cache, uint64_t changes);

void totals_cache_deinit(struct totals_cache *totals_cache);
