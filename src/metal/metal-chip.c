/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The map is read as libstdc++ lays it out, which its ABI has fixed: buckets, their number, the first node,
 * the number of nodes; a node has the next one, a key and a value, and a bucket has the node before its
 * first. It is believed only if every key is found through its bucket as well.
 */

#include "metal/metal-chip.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"

/* The part number in a board's id. */
#define METAL_CHIP_PART(board) ((uint32_t)((board) >> 36) & 0xfffffu)

/* Maps that are looked at: later the application may have forbidden itself what that takes. */
#define METAL_CHIP_LOOKS 16u

struct metal_chip_node {
	const struct metal_chip_node *next;
	int32_t key;
	uint64_t value;
};

struct metal_chip_map {
	const void *const *buckets;
	uint64_t bucket_count;
	const struct metal_chip_node *first;
	uint64_t count;
};

/* One thing that is said of a chip. */
struct metal_chip_word {
	uint64_t value;
	bool is_doubted;
};

static struct {
	struct metal_chip_word unique_id;
	struct metal_chip_word board;
} metal_chips[TTMEM_DEVICE_COUNT];

static const struct {
	uint32_t part;
	const char *card;
	const char *arch;
} metal_chip_cards[] = {
	{0x14, "n300", "wormhole_b0"},
	{0x18, "n150", "wormhole_b0"},
	{0x35, "galaxy-wormhole", "wormhole_b0"},
	{0x36, "p100", "blackhole"},
	{0x43, "p100a", "blackhole"},
	{0x40, "p150a", "blackhole"},
	{0x41, "p150b", "blackhole"},
	{0x42, "p150c", "blackhole"},
	{0x47, "galaxy-blackhole", "blackhole"},
};

static void metal_chip_say(struct metal_chip_word *word, uint64_t value)
{
	if (word->value && word->value != value)
		word->is_doubted = true;
	word->value = value;
}

/* Whether the node of that key is found as the map itself finds it. A node begins with the next one. */
static bool metal_chip_is_found(const struct metal_chip_map *map, const void *node, int32_t key)
{
	uint64_t home = (uint64_t)(int64_t)key % map->bucket_count;
	const void *at, *before;

	if (metal_learn_copy(&map->buckets[home], &before, sizeof(before)) < 0 || !before ||
	    metal_learn_copy(before, &at, sizeof(at)) < 0)
		return false;
	for (uint64_t i = 0; at && i < map->count; i++) {
		if (at == node)
			return true;
		if (metal_learn_copy(at, &at, sizeof(at)) < 0)
			return false;
	}
	return false;
}

/* Copies the next node. False: it is not one. */
static bool metal_chip_next(const struct metal_chip_map *map, const struct metal_chip_node **node,
			    struct metal_chip_node *ret_copy)
{
	if (!*node || metal_learn_copy(*node, ret_copy, sizeof(*ret_copy)) < 0 ||
	    ret_copy->key < 0 || (uint32_t)ret_copy->key >= TTMEM_DEVICE_COUNT ||
	    !metal_chip_is_found(map, *node, ret_copy->key))
		return false;
	*node = ret_copy->next;
	return true;
}

void metal_chip_told_ids(const void *map)
{
	struct metal_chip_node copies[64]; /* more chips than a machine has are not looked at */
	const struct metal_chip_node *node;
	struct metal_chip_map head;
	static uint32_t looks;
	uint64_t count = 0;

	if (__atomic_load_n(&looks, __ATOMIC_RELAXED) >= METAL_CHIP_LOOKS ||
	    __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) > METAL_CHIP_LOOKS)
		return;
	if (metal_learn_copy(map, &head, sizeof(head)) < 0 || head.bucket_count == 0 ||
	    head.count == 0 || head.count > ARRAY_SIZE(copies))
		return;
	node = head.first;
	while (count < head.count && metal_chip_next(&head, &node, &copies[count]))
		count++;
	if (count != head.count || node)
		return;
	metal_lock();
	for (uint64_t i = 0; i < count; i++)
		metal_chip_say(&metal_chips[copies[i].key].unique_id, copies[i].value);
	metal_unlock();
}

void metal_chip_told_board(int32_t chip, uint64_t board)
{
	if (chip < 0 || (uint32_t)chip >= TTMEM_DEVICE_COUNT)
		return;
	metal_lock();
	metal_chip_say(&metal_chips[chip].board, board);
	metal_unlock();
}

static uint64_t metal_chip_known(const struct metal_chip_word *word)
{
	uint64_t value;

	metal_lock();
	value = word->is_doubted ? 0 : word->value;
	metal_unlock();
	return value;
}

uint64_t metal_chip_unique_id(uint32_t chip)
{
	return chip < TTMEM_DEVICE_COUNT ? metal_chip_known(&metal_chips[chip].unique_id) : 0;
}

const char *metal_chip_card(uint32_t chip, const char *arch)
{
	uint64_t board = chip < TTMEM_DEVICE_COUNT ? metal_chip_known(&metal_chips[chip].board) : 0;

	for (size_t i = 0; board && arch && i < ARRAY_SIZE(metal_chip_cards); i++) {
		if (metal_chip_cards[i].part == METAL_CHIP_PART(board) &&
		    strcmp(metal_chip_cards[i].arch, arch) == 0)
			return metal_chip_cards[i].card;
	}
	return NULL;
}
