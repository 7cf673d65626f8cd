/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers keys, from 1 on in the order in which they first appear, so that a row of the caller's
 * own array can be found by key: the row of number N is at N - 1. A key is two words. A longer key is
 * split: number its parts first. For a key that is only a hash, use (hash, 0), (hash, 1) and so on
 * until the row is the right one.
 *
 * A secret seed places the keys: a process that chooses keys must not be able to choose collisions.
 * Keys are never removed.
 */

#include <stddef.h>
#include <stdint.h>

struct map_slot;

struct map {
	uint32_t count; /* the last number that was given */

	/* Private. */
	struct map_slot *slots; /* owned; open addressing */
	size_t capacity;        /* a power of two */
	uint64_t seed;
};

#define MAP_NULL ((struct map){.slots = NULL})

/* Afterwards it is empty and can be used again. */
void map_deinit(struct map *map);

/* The number of a key; 0: it is not there. */
uint32_t map_find(const struct map *map, uint64_t a, uint64_t b);

/*
 * The number of a key, which is new if that is the count after the call and not before. 0 or -ENOMEM.
 * Make room in the array first, so that every key has its row.
 */
int map_add(struct map *map, uint64_t a, uint64_t b, uint32_t *ret_number);
