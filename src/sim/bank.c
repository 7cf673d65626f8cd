/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bank allocator. Searching is linear in the number of blocks: a simulated model has a few
 * thousand of them, and being obviously right is worth more here than being fast.
 */

#include "sim/bank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t round_down(uint64_t value, uint64_t alignment)
{
	return value & ~(alignment - 1);
}

/* Only for values well below the end of the number range. */
static uint64_t round_up(uint64_t value, uint64_t alignment)
{
	return round_down(value + alignment - 1, alignment);
}

/**
 * sim_bank_init() - an empty memory
 * @bank: what to initialise
 * @base: the first address in each bank
 * @size: bytes in each bank
 * @banks: how many there are
 * @alignment: of addresses and pages, a power of two
 *
 * Return: 0, or -EINVAL if the arguments are invalid.
 */
int sim_bank_init(struct sim_bank *bank, uint64_t base, uint64_t size, uint32_t banks,
		  uint32_t alignment)
{
	uint64_t total;

	if (!size || !banks || !alignment || (alignment & (alignment - 1)))
		return -EINVAL;
	/* Half the range is far beyond any card and keeps all sums below in range. */
	if (base > INT64_MAX / 2 || size > INT64_MAX / 2)
		return -EINVAL;
	if (__builtin_mul_overflow(size, (uint64_t)banks, &total))
		return -EINVAL;

	*bank = (struct sim_bank){
		.base = base,
		.size = size,
		.banks = banks,
		.alignment = alignment,
	};
	return 0;
}

/**
 * sim_bank_deinit() - free the list of blocks
 * @bank: may be all zero
 */
void sim_bank_deinit(struct sim_bank *bank)
{
	free(bank->blocks);
	*bank = (struct sim_bank){0};
}

/**
 * sim_bank_need() - how much a buffer takes in each bank
 * @bank: the memory
 * @size: bytes of the buffer
 * @page_size: bytes of its pages, 0 = all in one page
 * @ret_length: where to put the bytes per bank
 *
 * Return: 0; -EINVAL for an empty buffer; -ENOMEM if it would not fit even into empty memory.
 */
int sim_bank_need(const struct sim_bank *bank, uint64_t size, uint64_t page_size,
		  uint64_t *ret_length)
{
	uint64_t pages, pages_per_bank, length;

	if (!size)
		return -EINVAL;
	if (!page_size)
		page_size = size;
	if (page_size > bank->size)
		return -ENOMEM;

	pages = size / page_size + (size % page_size != 0);
	pages_per_bank = pages / bank->banks + (pages % bank->banks != 0);
	if (__builtin_mul_overflow(pages_per_bank, round_up(page_size, bank->alignment), &length) ||
	    length > bank->size)
		return -ENOMEM;

	*ret_length = length;
	return 0;
}

/* Where hole i begins and ends: hole i is below block i, hole n_blocks above all of them. */
static uint64_t hole_begin(const struct sim_bank *bank, size_t i)
{
	return i ? bank->blocks[i - 1].address + bank->blocks[i - 1].length : bank->base;
}

static uint64_t hole_end(const struct sim_bank *bank, size_t i)
{
	return i < bank->n_blocks ? bank->blocks[i].address : bank->base + bank->size;
}

/* Bytes available in hole i at an aligned address. */
static uint64_t hole_room(const struct sim_bank *bank, size_t i)
{
	uint64_t begin = round_up(hole_begin(bank, i), bank->alignment);
	uint64_t end = round_down(hole_end(bank, i), bank->alignment);

	return begin < end ? end - begin : 0;
}

/* Find a hole for length bytes; its number is where the new block goes in the list. */
static int hole_find(const struct sim_bank *bank, uint64_t length, enum sim_bank_end end,
		     size_t *ret_hole)
{
	for (size_t i = 0; i <= bank->n_blocks; i++) {
		size_t hole = end == SIM_BANK_BOTTOM ? i : bank->n_blocks - i;

		if (hole_room(bank, hole) >= length) {
			*ret_hole = hole;
			return 0;
		}
	}
	return -ENOMEM;
}

static int make_room(struct sim_bank *bank)
{
	size_t room = bank->room ? 2 * bank->room : 64;
	struct sim_block *blocks;

	if (bank->n_blocks < bank->room)
		return 0;
	blocks = reallocarray(bank->blocks, room, sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	bank->blocks = blocks;
	bank->room = room;
	return 0;
}

/**
 * sim_bank_alloc() - find a place for a buffer
 * @bank: the memory
 * @request: how large, from which end, and what to remember with it
 * @ret_address: where to put its address, which is the same in every bank
 *
 * Return: 0; -ENOMEM if no hole is large enough; -EINVAL for an empty buffer.
 */
int sim_bank_alloc(struct sim_bank *bank, const struct sim_bank_request *request,
		   uint64_t *ret_address)
{
	uint64_t length, address;
	size_t hole;
	int r;

	r = sim_bank_need(bank, request->size, request->page_size, &length);
	if (r < 0)
		return r;
	r = hole_find(bank, length, request->end, &hole);
	if (r < 0)
		return r;
	r = make_room(bank);
	if (r < 0)
		return r;

	if (request->end == SIM_BANK_BOTTOM)
		address = round_up(hole_begin(bank, hole), bank->alignment);
	else
		address = round_down(hole_end(bank, hole), bank->alignment) - length;

	memmove(&bank->blocks[hole + 1], &bank->blocks[hole],
		(bank->n_blocks - hole) * sizeof(*bank->blocks));
	bank->blocks[hole] = (struct sim_block){
		.address = address,
		.length = length,
		.owner = request->owner,
		.kind = request->kind,
	};
	bank->n_blocks++;
	bank->used += length;
	*ret_address = address;
	return 0;
}

static void remove_block(struct sim_bank *bank, size_t i)
{
	bank->used -= bank->blocks[i].length;
	bank->n_blocks--;
	memmove(&bank->blocks[i], &bank->blocks[i + 1],
		(bank->n_blocks - i) * sizeof(*bank->blocks));
}

/**
 * sim_bank_free() - free a buffer's place
 * @bank: the memory
 * @kind: as it was in the request
 * @address: as sim_bank_alloc() returned it
 *
 * Return: 0, or -ENOENT if there is no such block.
 */
int sim_bank_free(struct sim_bank *bank, uint32_t kind, uint64_t address)
{
	size_t low = 0, high = bank->n_blocks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bank->blocks[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == bank->n_blocks || bank->blocks[low].address != address ||
	    bank->blocks[low].kind != kind)
		return -ENOENT;
	remove_block(bank, low);
	return 0;
}

/**
 * sim_bank_free_owner() - free every place of one owner
 * @bank: the memory
 * @kind: only blocks of this kind
 * @owner: only blocks of this owner
 *
 * Return: how many there were.
 */
size_t sim_bank_free_owner(struct sim_bank *bank, uint32_t kind, uint64_t owner)
{
	size_t kept = 0, before = bank->n_blocks;

	for (size_t i = 0; i < before; i++) {
		const struct sim_block *block = &bank->blocks[i];

		if (block->kind == kind && block->owner == owner)
			bank->used -= block->length;
		else
			bank->blocks[kept++] = *block;
	}
	bank->n_blocks = kept;
	return before - kept;
}

/**
 * sim_bank_largest() - the largest hole
 * @bank: the memory
 *
 * Return: its bytes in each bank: the largest page that fits once in every bank.
 */
uint64_t sim_bank_largest(const struct sim_bank *bank)
{
	uint64_t largest = 0;

	for (size_t i = 0; i <= bank->n_blocks; i++) {
		uint64_t room = hole_room(bank, i);

		if (room > largest)
			largest = room;
	}
	return largest;
}

uint64_t sim_bank_largest_total(const struct sim_bank *bank)
{
	return sim_bank_largest(bank) * bank->banks;
}
