/* SPDX-License-Identifier: Apache-2.0 */

/* Two lists that are filled while a book is read. */

#include "source/books/totals-cache.h"

#include <stdlib.h>

#include "base/array.h"

static size_t
	totals_cache_total; /* bytes of all; atomic: a daemon reads books in several threads */

/*
 * Makes room for one more, within the bounds. NULL: there is no point in continuing to fill the
 * cache.
 */
static void *totals_cache_room(struct totals_cache *totals_cache, void *list, size_t *capacity,
			       size_t count, size_t size)
{
	size_t before = *capacity * size, more;
	void *grown;

	if (totals_cache->overflowed || count >= TOTALS_CACHE_DEVICES_MAX)
		goto overflow;
	grown = array_grow(list, capacity, count + 1, size);
	if (!grown)
		goto overflow;
	more = *capacity * size - before;
	totals_cache->bytes += more;
	if (__atomic_add_fetch(&totals_cache_total, more, __ATOMIC_RELAXED) >
	    TOTALS_CACHE_BYTES_MAX)
		totals_cache->overflowed = true; /* this one fits already */
	return grown;
overflow:
	totals_cache->overflowed = true;
	return NULL;
}

bool totals_cache_is_current(const struct totals_cache *totals_cache, uint64_t changes,
			     bool is_narrow)
{
	return totals_cache->changes != 0 && totals_cache->changes == changes &&
	       totals_cache->is_narrow == is_narrow;
}

void totals_cache_restart(struct totals_cache *totals_cache, bool is_narrow)
{
	totals_cache->is_narrow = is_narrow;
	totals_cache->changes = 0;
	totals_cache->device_count = totals_cache->shard_count = 0;
	totals_cache->overflowed = false;
}

void totals_cache_add_device(struct totals_cache *totals_cache, uint32_t device,
			     const struct book_device *entry)
{
	struct totals_cache_device *devices = totals_cache_room(
		totals_cache, totals_cache->devices, &totals_cache->device_capacity,
		totals_cache->device_count, sizeof(*totals_cache->devices));

	if (!devices)
		return;
	totals_cache->devices = devices;
	devices[totals_cache->device_count++] =
		(struct totals_cache_device){.device = device, .entry = *entry};
}

void totals_cache_add_shard(struct totals_cache *totals_cache, uint32_t device,
			    const struct idle_counters *known)
{
	struct totals_cache_shard *shards =
		totals_cache_room(totals_cache, totals_cache->shards, &totals_cache->shard_capacity,
				  totals_cache->shard_count, sizeof(*totals_cache->shards));

	if (!shards)
		return;
	totals_cache->shards = shards;
	shards[totals_cache->shard_count++] =
		(struct totals_cache_shard){.device = device, .known = *known};
}

void totals_cache_complete(struct totals_cache *totals_cache, uint64_t changes)
{
	if (totals_cache->overflowed)
		totals_cache_deinit(totals_cache);
	else
		totals_cache->changes = changes;
}

void totals_cache_deinit(struct totals_cache *totals_cache)
{
	__atomic_sub_fetch(&totals_cache_total, totals_cache->bytes, __ATOMIC_RELAXED);
	free(totals_cache->devices);
	free(totals_cache->shards);
	*totals_cache = (struct totals_cache){0};
}
