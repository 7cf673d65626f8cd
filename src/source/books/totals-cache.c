/* SPDX-License-Identifier: Apache-2.0 */

/* Two lists that are made while a book is read. */

#include "source/books/totals-cache.h"

#include <stdlib.h>

#include "base/array.h"

static size_t memo_total; /* bytes of all; atomic, for a daemon reads books in several threads */

/* Room for one more, within the bounds. NULL: from now on there is no use in going on. */
static void *memo_room(struct memo *memo, void *list, size_t *capacity, size_t count, size_t size)
{
	size_t before = *capacity * size, more;
	void *grown;

	if (memo->overflowed || count >= MEMO_DEVICES_MAX)
		goto overflow;
	grown = array_grow(list, capacity, count + 1, size);
	if (!grown)
		goto overflow;
	more = *capacity * size - before;
	memo->bytes += more;
	if (__atomic_add_fetch(&memo_total, more, __ATOMIC_RELAXED) > MEMO_BYTES_MAX)
		memo->overflowed = true; /* this one is there already */
	return grown;
overflow:
	memo->overflowed = true;
	return NULL;
}

bool memo_is_current(const struct memo *memo, uint64_t changes)
{
	return memo->changes != 0 && memo->changes == changes;
}

void memo_restart(struct memo *memo)
{
	memo->changes = 0;
	memo->device_count = memo->shard_count = 0;
	memo->overflowed = false;
}

void memo_add_device(struct memo *memo, uint32_t device, const struct book_device *entry)
{
	struct memo_device *devices = memo_room(memo, memo->devices, &memo->device_capacity,
						memo->device_count, sizeof(*memo->devices));

	if (!devices)
		return;
	memo->devices = devices;
	devices[memo->device_count++] = (struct memo_device){.device = device, .entry = *entry};
}

void memo_add_shard(struct memo *memo, uint32_t device, const struct idle_counters *known)
{
	struct memo_shard *shards = memo_room(memo, memo->shards, &memo->shard_capacity,
					      memo->shard_count, sizeof(*memo->shards));

	if (!shards)
		return;
	memo->shards = shards;
	shards[memo->shard_count++] = (struct memo_shard){.device = device, .known = *known};
}

void memo_complete(struct memo *memo, uint64_t changes)
{
	if (memo->overflowed)
		memo_deinit(memo);
	else
		memo->changes = changes;
}

void memo_deinit(struct memo *memo)
{
	__atomic_sub_fetch(&memo_total, memo->bytes, __ATOMIC_RELAXED);
	free(memo->devices);
	free(memo->shards);
	*memo = (struct memo){0};
}
