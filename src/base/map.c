/* SPDX-License-Identifier: Apache-2.0 */

/* A hash table that is at most half full. It contains the keys: growing needs no callback. */

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define MAP_FIRST 16u /* slots */

struct map_slot {
	uint64_t a, b;
	uint32_t number; /* 0 = the slot is free */
};

void map_deinit(struct map *map)
{
	free(map->slots);
	*map = MAP_NULL;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct map_slot *map_place(const struct map *map, uint64_t a, uint64_t b)
{
	uint64_t at = hash_fold(hash_fold(a ^ map->seed, HASH_K1) ^ b, map->seed);

	for (;; at++) {
		struct map_slot *slot = &map->slots[at & (map->capacity - 1)];

		if (!slot->number || (slot->a == a && slot->b == b))
			return slot;
	}
}

uint32_t map_find(const struct map *map, uint64_t a, uint64_t b)
{
	return map->count ? map_place(map, a, b)->number : 0;
}

static int map_grow(struct map *map)
{
	struct map grown = *map;

	grown.capacity = map->capacity ? 2 * map->capacity : MAP_FIRST;
	grown.slots = calloc(grown.capacity, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	if (!map->capacity)
		grown.seed = hash_seed(grown.slots);
	for (size_t i = 0; i < map->capacity; i++) {
		const struct map_slot *slot = &map->slots[i];

		if (slot->number)
			*map_place(&grown, slot->a, slot->b) = *slot;
	}
	free(map->slots);
	*map = grown;
	return 0;
}

int map_add(struct map *map, uint64_t a, uint64_t b, uint32_t *ret_number)
{
	struct map_slot *slot;

	if (map->count == UINT32_MAX ||
	    ((size_t)map->count * 2 >= map->capacity && map_grow(map) < 0))
		return -ENOMEM;
	slot = map_place(map, a, b);
	if (!slot->number)
		*slot = (struct map_slot){.a = a, .b = b, .number = ++map->count};
	*ret_number = slot->number;
	return 0;
}
