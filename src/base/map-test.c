/* SPDX-License-Identifier: Apache-2.0 */

/* Keys get numbers in their order and keep them while the map grows. */

#include "base/map.h"

#include "base/testing/unit.h"

UNIT(keys_are_numbered_in_their_order)
{
	struct map map = MAP_NULL;
	uint32_t number = 0;

	assert(map_find(&map, 0, 0) == 0);
	assert(map_add(&map, 7, 8, &number) == 0 && number == 1);
	assert(map_add(&map, 0, 0, &number) == 0 && number == 2);
	assert(map_add(&map, 7, 8, &number) == 0 && number == 1);
	assert(map.count == 2);
	assert(map_find(&map, 0, 0) == 2 && map_find(&map, 7, 8) == 1);
	map_deinit(&map);
}

UNIT(both_words_of_a_key_count_and_so_does_their_order)
{
	struct map map = MAP_NULL;
	uint32_t number = 0;

	assert(map_add(&map, 1, 2, &number) == 0);
	assert(map_find(&map, 2, 1) == 0 && map_find(&map, 1, 0) == 0 && map_find(&map, 0, 2) == 0);
	assert(map_find(&map, 1, 2) == number);
	map_deinit(&map);
}

UNIT(numbers_stay_while_the_map_grows)
{
	enum {
		COUNT = 20000
	};
	struct map map = MAP_NULL;
	uint32_t number = 0;

	/* Addresses differ in their middle bits, sizes in their highest. */
	for (uint64_t i = 0; i < COUNT; i++) {
		assert(map_add(&map, i << 12, i << 40, &number) == 0);
		assert(number == i + 1 && map.count == i + 1);
	}
	for (uint64_t i = 0; i < COUNT; i++)
		assert(map_find(&map, i << 12, i << 40) == i + 1);
	assert(map_find(&map, (uint64_t)COUNT << 12, (uint64_t)COUNT << 40) == 0);
	map_deinit(&map);
}

UNIT(a_map_is_empty_after_deinit_and_can_be_used_again)
{
	struct map map = MAP_NULL;
	uint32_t number = 0;

	assert(map_add(&map, 1, 1, &number) == 0);
	map_deinit(&map);
	assert(map.count == 0 && map_find(&map, 1, 1) == 0);
	assert(map_add(&map, 2, 2, &number) == 0 && number == 1);
	map_deinit(&map);
}
