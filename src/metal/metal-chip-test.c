/* SPDX-License-Identifier: Apache-2.0 */

/* Maps as libstdc++ makes them, and what only looks like one. */

#include "metal/metal-chip.h"

#include <string.h>

#include "base/testing/unit.h"

#define TEST_BUCKETS 5u

struct test_node {
	const struct test_node *next;
	int32_t key;
	uint64_t value;
};

struct test_map {
	const struct test_node *const *buckets;
	uint64_t bucket_count;
	const struct test_node *first;
	uint64_t count;
};

/* Chips 0 and 5, which share a bucket, and 3. */
static struct test_node test_nodes[3];
static const struct test_node *test_buckets[TEST_BUCKETS];
static struct test_map test_map;

static void test_make(void)
{
	memset(test_buckets, 0, sizeof(test_buckets));
	test_map = (struct test_map){test_buckets, TEST_BUCKETS, &test_nodes[0], 3};
	test_nodes[0] = (struct test_node){&test_nodes[1], 3, 0x333};
	test_nodes[1] = (struct test_node){&test_nodes[2], 5, 0x555};
	test_nodes[2] = (struct test_node){NULL, 0, 0x100};
	test_buckets[3] = (const struct test_node *)(const void *)&test_map.first;
	test_buckets[0] = &test_nodes[0];
}

UNIT(reads_the_unique_ids_of_a_map)
{
	test_make();
	metal_chip_told_ids(&test_map);
	metal_chip_told_ids(&test_map);
	assert(metal_chip_unique_id(3) == 0x333 && metal_chip_unique_id(5) == 0x555);
	assert(metal_chip_unique_id(0) == 0x100);
	assert(metal_chip_unique_id(1) == 0 && metal_chip_unique_id(UINT32_MAX) == 0);
}

UNIT(does_not_know_a_chip_of_which_two_things_were_said)
{
	test_make();
	metal_chip_told_ids(&test_map);
	test_nodes[1].value = 0x556;
	metal_chip_told_ids(&test_map);
	assert(metal_chip_unique_id(5) == 0 && metal_chip_unique_id(3) == 0x333);
	metal_chip_told_ids(&test_map);
	assert(metal_chip_unique_id(5) == 0);
}

static void test_is_nothing(const void *map)
{
	metal_chip_told_ids(map);
	for (uint32_t chip = 0; chip < 8; chip++)
		assert(metal_chip_unique_id(chip) == 0);
}

UNIT(believes_nothing_that_is_no_such_map)
{
	test_is_nothing(NULL);
	test_make();
	test_map.count = 2; /* the last node is not the last */
	test_is_nothing(&test_map);
	test_make();
	test_map.count = 4;
	test_is_nothing(&test_map);
	test_make();
	test_map.bucket_count = 0;
	test_is_nothing(&test_map);
	test_make();
	test_nodes[2].next = &test_nodes[0]; /* in a circle */
	test_is_nothing(&test_map);
	test_make();
	test_nodes[1].next = (const struct test_node *)8;
	test_is_nothing(&test_map);
	test_make();
	test_nodes[0].key = 4; /* it is in no bucket */
	test_is_nothing(&test_map);
	test_make();
	test_nodes[0].key = -2;
	test_is_nothing(&test_map);
}

UNIT(knows_a_card_by_its_boards_id)
{
	metal_chip_told_board(0, UINT64_C(0x18) << 36 | 7);
	metal_chip_told_board(1, UINT64_C(0x99) << 36);
	metal_chip_told_board(-1, 1);
	assert(strcmp(metal_chip_card(0, "wormhole_b0"), "n150") == 0);
	assert(!metal_chip_card(0, "blackhole") && !metal_chip_card(0, NULL));
	assert(!metal_chip_card(1, "wormhole_b0") && !metal_chip_card(2, "wormhole_b0"));
	metal_chip_told_board(0, UINT64_C(0x14) << 36 | 7);
	assert(!metal_chip_card(0, "wormhole_b0"));
}
