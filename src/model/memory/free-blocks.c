/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Free blocks lie between sorted blocks in use, from the end of one to the start of the next. Only
 * what is left after aligning both ends counts, because the rest cannot be allocated.
 *
 * Aliases and buffers at addresses that their owner chose take nothing from the allocator: they lie
 * in memory that was handed out to others, or that is outside the allocator's range.
 */

#include "model/memory/free-blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/cards/card.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define FREE_BLOCKS_FLAGS_ELSEWHERE (UINT32_C(1) << 1 | UINT32_C(1) << 2) /* preallocated, alias */

/* The type that is cut off the top of this memory, or BOOK_TYPES for none. */
static uint32_t free_blocks_top(uint32_t type)
{
	if (type == TYPES_DRAM)
		return TYPES_TRACE;
	return type == TYPES_L1 ? TYPES_L1_SMALL : BOOK_TYPES;
}

/* The card's name as the process declares it, else as the driver does. */
static const char *free_blocks_card(const struct snapshot *snapshot,
				    const struct snapshot_part *part)
{
	if (part->facts.card || part->card >= snapshot->card_count)
		return part->facts.card;
	return snapshot->cards[part->card].card;
}

/* As declared, else from the table of cards. */
static struct snapshot_window free_blocks_declared(const struct snapshot_facts *facts,
						   const char *name, uint32_t type)
{
	struct snapshot_window window = facts->windows[type];
	const struct card_facts *card = card_find(name);

	if (window.size && window.banks)
		return window;
	if (card && type == TYPES_DRAM)
		return (struct snapshot_window){0, card->dram_bank_size, card->dram_banks, 0};
	if (card && type == TYPES_L1)
		return (struct snapshot_window){0, card->l1_per_core, card->cores, 0};
	return (struct snapshot_window){0};
}

/* Without the part that other types take; @ret_blocks has the minimum alignment of addresses. */
static int free_blocks_window(const struct snapshot_facts *facts, const char *name, uint32_t type,
			      struct free_blocks *ret_blocks)
{
	struct snapshot_window window = free_blocks_declared(facts, name, type);
	uint32_t top = free_blocks_top(type);
	uint64_t end;

	if (!window.size || !window.banks || __builtin_add_overflow(window.base, window.size, &end))
		return FREE_BLOCKS_UNKNOWN;
	if (top < BOOK_TYPES && facts->windows[top].size &&
	    facts->windows[top].base > window.base && facts->windows[top].base < end)
		window.size = facts->windows[top].base - window.base;
	/* A process declared the alignment: it must be a power of two that leaves something. */
	if (!window.alignment || window.alignment & (window.alignment - 1) ||
	    window.alignment > window.size)
		window.alignment = 1;
	*ret_blocks = (struct free_blocks){
		.base = window.base,
		.size = window.size,
		.banks = window.banks,
		.alignment = window.alignment,
	};
	return 0;
}

/* Which memory a buffer lies in; BOOK_TYPES if that is not known. */
static uint32_t free_blocks_memory(const struct snapshot_buffer *buffer,
				   const struct snapshot_part *part)
{
	const struct snapshot_window *windows = part->facts.windows;

	if (buffer->type != TYPES_KERNEL)
		return types_place(buffer->type);
	/* Binaries lie in DRAM or in L1: the number of banks decides. */
	if (buffer->banks && buffer->banks == windows[TYPES_DRAM].banks)
		return TYPES_DRAM;
	if (buffer->banks && buffer->banks == windows[TYPES_L1].banks)
		return TYPES_L1;
	return BOOK_TYPES;
}

static uint64_t free_blocks_align_up(const struct free_blocks *free_blocks, uint64_t value)
{
	uint64_t up;

	return __builtin_add_overflow(value, free_blocks->alignment - 1, &up)
		       ? UINT64_MAX - UINT64_MAX % free_blocks->alignment
		       : bits_align_down(up, free_blocks->alignment);
}

/* Bytes that @size takes in each of @banks, in pages of @page_size; UINT64_MAX = too large. */
static uint64_t free_blocks_need(const struct free_blocks *free_blocks, uint64_t size,
				 uint64_t page_size, uint32_t banks)
{
	uint64_t pages, need;

	if (!banks)
		return UINT64_MAX;
	if (!page_size)
		page_size = free_blocks->alignment;
	pages = size / page_size + (size % page_size != 0);
	pages = pages / banks + (pages % banks != 0);
	return __builtin_mul_overflow(pages, free_blocks_align_up(free_blocks, page_size), &need)
		       ? UINT64_MAX
		       : need;
}

uint64_t free_blocks_share(const struct snapshot *snapshot, const struct snapshot_part *part,
			   const struct snapshot_buffer *buffer)
{
	uint32_t type = free_blocks_memory(buffer, part);
	struct free_blocks memory;

	if (buffer->size_per_bank)
		return buffer->size_per_bank;
	if (type >= BOOK_TYPES ||
	    free_blocks_window(&part->facts, free_blocks_card(snapshot, part), type, &memory) != 0)
		return 0;
	return free_blocks_need(&memory, buffer->size, 0, memory.banks);
}

/* Adds a buffer to the blocks, if it lies in this memory. */
static void free_blocks_place(struct free_blocks *free_blocks, const struct snapshot_buffer *buffer)
{
	uint64_t length = buffer->size_per_bank, end, occupied;

	if (!length) {
		length = free_blocks_need(free_blocks, buffer->size, 0, free_blocks->banks);
		free_blocks->guessed++;
	}
	if (__builtin_add_overflow(buffer->address, length, &end) ||
	    buffer->address < free_blocks->base || end > free_blocks->base + free_blocks->size) {
		free_blocks->unplaced++;
		return;
	}
	free_blocks->blocks[free_blocks->block_count++] =
		(struct free_blocks_block){buffer->address, length, buffer};
	if (snapshot_buffer_occupied(buffer, &occupied)) {
		free_blocks->occupied = merge_add(free_blocks->occupied, occupied);
		free_blocks->occupied_known++;
	}
}

/* The first buffer that does not sort before (@process, @device). */
static size_t free_blocks_first(const struct snapshot *snapshot, uint32_t process, uint32_t device)
{
	size_t low = 0, high = snapshot->buffer_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct snapshot_buffer *buffer = &snapshot->buffers[middle];

		if (buffer->process < process ||
		    (buffer->process == process && buffer->device < device))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int free_blocks_collect(const struct snapshot *snapshot, uint32_t process,
			       const struct snapshot_part *part, uint32_t type,
			       struct free_blocks *free_blocks)
{
	size_t first = free_blocks_first(snapshot, process, part->device);
	size_t end = free_blocks_first(snapshot, process, part->device + 1);
	size_t count = end > first ? end - first : 0;

	free_blocks->blocks = calloc(count + 1, sizeof(*free_blocks->blocks));
	free_blocks->holes = calloc(count + 1, sizeof(*free_blocks->holes));
	if (!free_blocks->blocks || !free_blocks->holes)
		return -ENOMEM;
	for (size_t i = first; i < end; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (free_blocks_memory(buffer, part) == type &&
		    !(buffer->flags & FREE_BLOCKS_FLAGS_ELSEWHERE))
			free_blocks_place(free_blocks, buffer);
	}
	return 0;
}

/* What can be allocated between two addresses. */
static struct free_blocks_hole free_blocks_between(const struct free_blocks *free_blocks,
						   uint64_t begin, uint64_t end)
{
	struct free_blocks_hole hole = {.address = free_blocks_align_up(free_blocks, begin)};
	uint64_t last = bits_align_down(end, free_blocks->alignment);

	hole.length = hole.address < last ? last - hole.address : 0;
	return hole;
}

static void free_blocks_list(struct free_blocks *free_blocks)
{
	uint64_t at = free_blocks->base, end = free_blocks->base + free_blocks->size;

	for (size_t i = 0; i <= free_blocks->block_count; i++) {
		uint64_t next = i < free_blocks->block_count ? free_blocks->blocks[i].address : end;
		struct free_blocks_hole hole = free_blocks_between(free_blocks, at, next);

		if (hole.length) {
			free_blocks->holes[free_blocks->hole_count++] = hole;
			free_blocks->free += hole.length;
			free_blocks->largest = bits_max(free_blocks->largest, hole.length);
		}
		if (i == free_blocks->block_count)
			break;
		next += free_blocks->blocks[i].length;
		free_blocks->used +=
			next > at ? next - bits_max(at, free_blocks->blocks[i].address) : 0;
		at = bits_max(at, next);
	}
}

int free_blocks_find(const struct snapshot *snapshot, uint32_t process,
		     const struct snapshot_part *part, uint32_t type,
		     struct free_blocks *ret_blocks)
{
	CLEANUP(free_blocks_deinit) struct free_blocks free_blocks = FREE_BLOCKS_NULL;
	const char *name = free_blocks_card(snapshot, part);
	int r = types_has_banks(type) ? free_blocks_window(&part->facts, name, type, &free_blocks)
				      : -EINVAL;

	if (r != 0)
		return r;
	r = free_blocks_collect(snapshot, process, part, type, &free_blocks);
	if (r < 0)
		return r;
	/* A client that declares nothing may report ids instead of addresses. */
	if (free_blocks.unplaced && !part->facts.card && !part->facts.windows[type].size)
		return FREE_BLOCKS_UNKNOWN;
	free_blocks_list(&free_blocks);
	*ret_blocks = free_blocks;
	free_blocks = FREE_BLOCKS_NULL;
	return 0;
}

static int free_blocks_compare(const void *left, const void *right)
{
	const struct free_blocks_block *a = left, *b = right;

	return bits_compare(a->address, b->address);
}

int free_blocks_join(const struct free_blocks *const *lists, size_t count,
		     struct free_blocks *ret_blocks)
{
	CLEANUP(free_blocks_deinit)
	struct free_blocks all = {
		.base = lists[0]->base,
		.size = lists[0]->size,
		.banks = lists[0]->banks,
		.alignment = lists[0]->alignment,
	};
	size_t blocks = 0;

	for (size_t i = 0; i < count; i++)
		blocks += lists[i]->block_count;
	all.blocks = calloc(blocks + 1, sizeof(*all.blocks));
	all.holes = calloc(blocks + 1, sizeof(*all.holes));
	if (!all.blocks || !all.holes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < lists[i]->block_count; k++) {
			const struct free_blocks_block *block = &lists[i]->blocks[k];

			if (lists[i]->banks == all.banks && block->address >= all.base &&
			    block->address + block->length <= all.base + all.size)
				all.blocks[all.block_count++] = *block;
		}
	}
	qsort(all.blocks, all.block_count, sizeof(*all.blocks), free_blocks_compare);
	free_blocks_list(&all);
	*ret_blocks = all;
	all = FREE_BLOCKS_NULL;
	return 0;
}

bool free_blocks_headroom(const struct free_blocks *free_blocks, uint64_t *ret_bytes)
{
	uint64_t lowest = free_blocks->base + free_blocks->size, reach = 0;

	for (size_t i = 0; i < free_blocks->block_count; i++) {
		const struct free_blocks_block *block = &free_blocks->blocks[i];

		if (block->buffer->type == TYPES_CB && !block->buffer->size_per_bank)
			return false;
		if (block->buffer->type == TYPES_CB)
			reach = bits_max(reach, block->address + block->length);
		else if (block->buffer->type == TYPES_L1)
			lowest = bits_min(lowest, block->address);
	}
	/* One of those that lie elsewhere may be a circular buffer. */
	if (!reach || free_blocks->unplaced)
		return false;
	*ret_bytes = lowest > reach ? lowest - reach : 0;
	return true;
}

void free_blocks_deinit(struct free_blocks *free_blocks)
{
	free(free_blocks->blocks);
	free(free_blocks->holes);
	*free_blocks = FREE_BLOCKS_NULL;
}

bool free_blocks_occupied(const struct free_blocks *free_blocks, uint64_t *ret_bytes)
{
	*ret_bytes = free_blocks->occupied;
	return free_blocks->occupied_known == free_blocks->block_count;
}

double free_blocks_fragmentation(const struct free_blocks *free_blocks)
{
	return free_blocks->free ? 1 - (double)free_blocks->largest / (double)free_blocks->free : 0;
}

/* The free space before block @i begins at the farthest end of all blocks before it. */
static void free_blocks_ends(const struct free_blocks *free_blocks, uint64_t *ends)
{
	uint64_t at = free_blocks->base;

	for (size_t i = 0; i < free_blocks->block_count; i++) {
		ends[i] = at;
		at = bits_max(at, free_blocks->blocks[i].address + free_blocks->blocks[i].length);
	}
}

/*
 * The run of blocks that has to be freed to make room, with the fewest bytes. As the first block
 * moves up, the last never moves down, so each is visited at most twice.
 */
static void free_blocks_clear(const struct free_blocks *free_blocks, struct free_blocks_fit *fit)
{
	CLEANUP_FREE uint64_t *ends = calloc(free_blocks->block_count + 1, sizeof(*ends));
	uint64_t bytes = 0, best = UINT64_MAX;
	size_t last = 0; /* one past the run */

	if (!ends)
		return; /* no run frees enough */
	free_blocks_ends(free_blocks, ends);
	for (size_t first = 0; first < free_blocks->block_count; first++) {
		while (last <= free_blocks->block_count) {
			uint64_t end = last < free_blocks->block_count
					       ? free_blocks->blocks[last].address
					       : free_blocks->base + free_blocks->size;

			if (last > first &&
			    free_blocks_between(free_blocks, ends[first], end).length >= fit->need)
				break;
			if (last == free_blocks->block_count)
				return;
			bytes = merge_add(bytes, free_blocks->blocks[last++].length);
		}
		if (bytes < best) {
			best = bytes;
			fit->first = first;
			fit->count = last - first;
			fit->bytes = bytes;
		}
		bytes -= bits_min(bytes, free_blocks->blocks[first].length);
	}
}

/* Of a sharded buffer whose cores are not known: whether it fits even on one, or not even on all. */
static enum free_blocks_verdict free_blocks_fit_cores(const struct free_blocks *free_blocks,
						      const struct free_blocks_request *request,
						      struct free_blocks_fit *ret_fit)
{
	struct free_blocks_request some = *request;

	some.cores = free_blocks->banks;
	free_blocks_fit(free_blocks, &some, ret_fit);
	if (ret_fit->verdict != FREE_BLOCKS_FITS)
		return ret_fit->verdict;
	some.cores = 1;
	free_blocks_fit(free_blocks, &some, ret_fit);
	return ret_fit->verdict == FREE_BLOCKS_FITS ? FREE_BLOCKS_FITS : FREE_BLOCKS_CORES;
}

void free_blocks_fit(const struct free_blocks *free_blocks,
		     const struct free_blocks_request *request, struct free_blocks_fit *ret_fit)
{
	uint32_t banks = request->cores ? request->cores : free_blocks->banks;
	struct free_blocks_fit fit = {.of = free_blocks};
	struct free_blocks_hole whole = free_blocks_between(free_blocks, free_blocks->base,
							    free_blocks->base + free_blocks->size);

	if (request->is_sharded && !request->cores && !request->per_bank) {
		ret_fit->verdict = free_blocks_fit_cores(free_blocks, request, ret_fit);
		return;
	}
	/* There are not so many cores. */
	fit.need = banks > free_blocks->banks ? UINT64_MAX
		   : request->per_bank        ? request->per_bank
					      : free_blocks_need(free_blocks, request->size,
								 request->page_size, banks);
	fit.verdict = fit.need > whole.length        ? FREE_BLOCKS_LARGE
		      : fit.need > free_blocks->free ? FREE_BLOCKS_FULL
						     : FREE_BLOCKS_CUT;
	for (size_t i = 0; fit.verdict == FREE_BLOCKS_CUT && i < free_blocks->hole_count; i++) {
		const struct free_blocks_hole *hole =
			&free_blocks->holes[request->top ? free_blocks->hole_count - 1 - i : i];

		if (hole->length < fit.need)
			continue;
		fit.verdict = FREE_BLOCKS_FITS;
		fit.address =
			request->top ? hole->address + hole->length - fit.need : hole->address;
		fit.length = hole->length;
	}
	if (fit.verdict == FREE_BLOCKS_CUT || fit.verdict == FREE_BLOCKS_FULL)
		free_blocks_clear(free_blocks, &fit);
	*ret_fit = fit;
}
