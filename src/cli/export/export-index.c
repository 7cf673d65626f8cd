/* SPDX-License-Identifier: Apache-2.0 */

/* A hash table that is at most half full. */

#include "cli/export/export-index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"

#define INDEX_FIRST 256u

struct export_index_slot {
	uint64_t a, b;
	uint32_t number; /* 0 = the slot is free */
};

static struct export_index_slot *index_place(const struct export_index *index, uint64_t a,
					     uint64_t b)
{
	uint64_t hash = hash_fold(hash_fold(a ^ index->seed, HASH_K1) ^ b, index->seed | 1);
	size_t at = hash_u64(hash) & (index->capacity - 1);

	while (index->slots[at].number && (index->slots[at].a != a || index->slots[at].b != b))
		at = (at + 1) & (index->capacity - 1);
	return &index->slots[at];
}

static int index_grow(struct export_index *index)
{
	struct export_index grown = *index;

	if (!index->capacity &&
	    getrandom(&grown.seed, sizeof(grown.seed), GRND_NONBLOCK) != sizeof(grown.seed))
		grown.seed = (uintptr_t)index; /* early at boot: better than none */
	grown.capacity = index->capacity ? index->capacity * 2 : INDEX_FIRST;
	grown.slots = calloc(grown.capacity, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->capacity; i++) {
		if (index->slots[i].number)
			*index_place(&grown, index->slots[i].a, index->slots[i].b) =
				index->slots[i];
	}
	free(index->slots);
	*index = grown;
	return 0;
}

int export_index_find(struct export_index *index, uint64_t a, uint64_t b, uint32_t *ret_number)
{
	struct export_index_slot *slot;

	if (index->count == UINT32_MAX ||
	    ((size_t)index->count * 2 >= index->capacity && index_grow(index) < 0))
		return -ENOMEM;
	slot = index_place(index, a, b);
	if (!slot->number)
		*slot = (struct export_index_slot){.a = a, .b = b, .number = ++index->count};
	*ret_number = slot->number;
	return 0;
}

void export_index_deinit(struct export_index *index)
{
	free(index->slots);
	*index = EXPORT_INDEX_NULL;
}
