/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was read of a living book, for the next time: which devices it has, what was declared of them, and
 * the counters of each. A book counts its changes of the first two, so that who remembers them
 * needs not look; of the third, see idle-counters.h. Remembering is a favour: without memory for it, or beyond
 * the bounds, a book is simply read again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/idle-counters.h"

/* Of a book; and of all of them, for somebody may make many. */
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

/* Both lists rise. */
struct totals_cache {
	uint64_t changes; /* of the book when they were made; 0 = they are not complete */
	struct totals_cache_device *devices;
	size_t device_count, device_capacity;
	struct totals_cache_shard *shards;
	size_t shard_count, shard_capacity;
	size_t bytes; /* of the lists, as counted into the sum of all */
	bool overflowed;
};

/* Of a book that has counted so many changes: whether the lists are what there is. */
bool totals_cache_is_current(const struct totals_cache *totals_cache, uint64_t changes);

/* Begin the lists anew; add to them; and once everything has been added: of which state they are. */
void totals_cache_restart(struct totals_cache *totals_cache);
void totals_cache_add_device(struct totals_cache *totals_cache, uint32_t device,
			     const struct book_device *entry);
void totals_cache_add_shard(struct totals_cache *totals_cache, uint32_t device,
			    const struct idle_counters *known);
void totals_cache_complete(struct totals_cache *totals_cache, uint64_t changes);

void totals_cache_deinit(struct totals_cache *totals_cache);
