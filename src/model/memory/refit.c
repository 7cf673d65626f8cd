/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A free list for each memory of each space, and for each slot of the book's table what it has taken
 * from one of them.
 */

#include "model/memory/refit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/merge.h"
#include "model/types.h"

#define REFIT_OWNS_DATA 0x01u
#define REFIT_ELSEWHERE (0x02u | SNAPSHOT_FLAG_ALIAS) /* at an address that was passed in */

/* One allocator of the process. */
struct refit_space {
	uint32_t number;
	struct free_list lists[REFIT_MEMORIES];
};

struct refit_block {
	uint64_t address;
	uint64_t length; /* 0 = the slot has taken nothing */
	uint32_t space;  /* index */
	uint32_t memory;
};

struct refit {
	struct refit_rules rules;
	struct refit_space *spaces;
	size_t space_count, space_capacity;
	struct refit_block *blocks; /* by slot */
	size_t block_count, block_capacity;
	struct refit_margin margins[REFIT_MARGINS];
	struct refit_counts counts;
};

struct refit *refit_new(const struct refit_rules *rules)
{
	struct refit *refit = calloc(1, sizeof(*refit));

	if (refit)
		refit->rules = *rules;
	return refit;
}

static void refit_space_deinit(struct refit_space *space)
{
	for (uint32_t memory = 0; memory < REFIT_MEMORIES; memory++)
		free_list_deinit(&space->lists[memory]);
}

struct refit *refit_free(struct refit *refit)
{
	if (!refit)
		return NULL;
	for (size_t i = 0; i < refit->space_count; i++)
		refit_space_deinit(&refit->spaces[i]);
	free(refit->spaces);
	free(refit->blocks);
	free(refit);
	return NULL;
}

const struct refit_margin *refit_margins(const struct refit *refit)
{
	return refit->margins;
}

const struct refit_counts *refit_counts(const struct refit *refit)
{
	return &refit->counts;
}

/* Addresses and lengths are aligned, so only what lies between aligned addresses counts. */
static int refit_list_init(struct free_list *list, const struct snapshot_window *window)
{
	uint64_t begin, end;

	if (!window->size)
		return free_list_init(list, 0, 0);
	begin = bits_align_up(window->base, window->alignment);
	end = bits_align_down(window->base + window->size, window->alignment);
	return free_list_init(list, begin, end > begin ? end - begin : 0);
}

/* There are few of them. The index of the space, or -ENOMEM. */
static int64_t refit_space(struct refit *refit, uint32_t number)
{
	struct refit_space *spaces, *space;
	int r = 0;

	for (size_t i = 0; i < refit->space_count; i++) {
		if (refit->spaces[i].number == number)
			return (int64_t)i;
	}
	spaces = array_grow(refit->spaces, &refit->space_capacity, refit->space_count + 1,
			    sizeof(*spaces));
	if (!spaces)
		return -ENOMEM;
	refit->spaces = spaces;
	space = &spaces[refit->space_count];
	*space = (struct refit_space){.number = number};
	for (uint32_t memory = 0; r == 0 && memory < REFIT_MEMORIES; memory++)
		r = refit_list_init(&space->lists[memory], &refit->rules.to[memory]);
	if (r < 0) {
		refit_space_deinit(space);
		return r;
	}
	refit->counts.spaces++;
	return (int64_t)refit->space_count++;
}

/* Kernels' binaries lie in DRAM or in L1: the number of banks decides. */
static uint32_t refit_memory(const struct refit *refit, const struct refit_buffer *buffer)
{
	uint32_t banks = buffer->shape.banks;

	if (buffer->type != TYPES_KERNEL)
		return types_place(buffer->type);
	return banks && banks != refit->rules.from[TYPES_DRAM].banks &&
			       banks == refit->rules.from[TYPES_L1].banks
		       ? TYPES_L1
		       : TYPES_DRAM;
}

static bool refit_is_top_down(const struct refit_buffer *buffer)
{
	if (buffer->shape.flags & (BOOK_SHAPE_BOTTOM_UP | BOOK_SHAPE_TOP_DOWN))
		return buffer->shape.flags & BOOK_SHAPE_TOP_DOWN;
	return buffer->type == TYPES_L1 || buffer->type == TYPES_L1_SMALL;
}

/* Saturates. */
static uint64_t refit_align(const struct snapshot_window *window, uint64_t value)
{
	return value > UINT64_MAX - window->alignment ? UINT64_MAX
						      : bits_align_up(value, window->alignment);
}

/* Pages are dealt to the banks in turn, and every bank keeps room for as many. */
static uint64_t refit_spread(const struct snapshot_window *window, uint64_t size, uint64_t page)
{
	uint64_t pages = size / page + (size % page != 0);
	uint64_t length;

	pages = pages / window->banks + (pages % window->banks != 0);
	return __builtin_mul_overflow(pages, refit_align(window, page), &length) ? UINT64_MAX
										 : length;
}

/* A part of the banks, each with its own piece, whatever the card. */
static bool refit_is_sharded(const struct book_shape *shape, const struct snapshot_window *from)
{
	if (!shape->banks || !shape->size_per_bank || shape->flags & BOOK_SHAPE_INTERLEAVED)
		return false;
	return shape->flags & BOOK_SHAPE_SHARDED || shape->banks < from->banks;
}

/* Bytes in each bank; UINT64_MAX = more than there can be. */
static uint64_t refit_need(const struct snapshot_window *from, const struct snapshot_window *to,
			   const struct refit_buffer *buffer, bool *ret_is_guess)
{
	const struct book_shape *shape = &buffer->shape;
	uint64_t all = buffer->size;

	*ret_is_guess = false;
	if (refit_is_sharded(shape, from))
		return refit_align(to, shape->size_per_bank);
	if (shape->page_size)
		return refit_spread(to, buffer->size, shape->page_size);
	if (shape->size_per_bank && (!shape->banks || shape->banks == to->banks))
		return refit_align(to, shape->size_per_bank);
	*ret_is_guess = true;
	if (shape->size_per_bank &&
	    __builtin_mul_overflow(shape->size_per_bank, (uint64_t)shape->banks, &all))
		return UINT64_MAX;
	return refit_align(to, all / to->banks + (all % to->banks != 0));
}

/* What takes nothing from an allocator. */
static bool refit_is_elsewhere(const struct refit_buffer *buffer)
{
	return buffer->type >= BOOK_TYPES || !buffer->size || buffer->flags & REFIT_ELSEWHERE;
}

/* Programs place their circular buffers themselves, from the bottom of L1. */
static bool refit_is_circular(const struct refit_buffer *buffer)
{
	return buffer->type == TYPES_CB && !(buffer->flags & REFIT_OWNS_DATA);
}

static void refit_note_margin(struct refit_margin *margin, const struct snapshot_window *window,
			      uint64_t least, const struct free_list *list, uint64_t moment)
{
	if (margin->is_known && margin->free <= least)
		return;
	*margin = (struct refit_margin){
		.is_known = true,
		.size = window->size,
		.free = least,
		.largest = list ? free_list_largest(list) : least,
		.banks = window->banks,
		.moment = moment,
	};
}

static int refit_keep(struct refit *refit, uint32_t slot, const struct refit_block *block)
{
	struct refit_block *blocks;

	if (slot >= refit->block_count) {
		blocks = array_grow(refit->blocks, &refit->block_capacity, (size_t)slot + 1,
				    sizeof(*blocks));
		if (!blocks)
			return -ENOMEM;
		memset(&blocks[refit->block_count], 0,
		       ((size_t)slot + 1 - refit->block_count) * sizeof(*blocks));
		refit->blocks = blocks;
		refit->block_count = (size_t)slot + 1;
	}
	refit->blocks[slot] = *block;
	return 0;
}

int refit_give(struct refit *refit, uint32_t slot)
{
	struct refit_block *block;
	int r;

	if (slot >= refit->block_count || !refit->blocks[slot].length)
		return 0;
	block = &refit->blocks[slot];
	r = free_list_give(&refit->spaces[block->space].lists[block->memory], block->address,
			   block->length);
	if (r == 0)
		*block = (struct refit_block){0};
	return r;
}

static enum refit_why refit_why(const struct refit_failure *failure)
{
	if (failure->need > failure->size)
		return REFIT_LARGE;
	return failure->need > failure->free ? REFIT_FULL : REFIT_CUT;
}

static struct refit_failure refit_failure(const struct snapshot_window *window, uint32_t memory,
					  uint64_t need, const struct free_list *list)
{
	struct refit_failure failure = {
		.memory = memory,
		.need = need,
		.free = list->free,
		.largest = free_list_largest(list),
		.size = bits_align_down(window->base + window->size, window->alignment) -
			bits_align_up(window->base, window->alignment),
		.banks = window->banks,
	};

	failure.why = refit_why(&failure);
	return failure;
}

/* They lie where the program put them, at the same distance from the bottom, and must end below L1's buffers. */
static int refit_take_circular(struct refit *refit, const struct refit_buffer *buffer,
			       uint64_t moment, struct refit_failure *ret_failure)
{
	const struct snapshot_window *from = &refit->rules.from[TYPES_L1];
	const struct snapshot_window *to = &refit->rules.to[TYPES_L1];
	uint64_t base = bits_align_up(to->base, to->alignment), room, reach;
	int64_t space = refit_space(refit, buffer->space);
	const struct free_list *list;

	if (space < 0)
		return (int)space;
	if (!from->size || buffer->address < from->base || !buffer->shape.size_per_bank ||
	    __builtin_add_overflow(buffer->address - from->base, buffer->shape.size_per_bank,
				   &reach)) {
		refit->counts.unjudged++;
		return 0;
	}
	list = &refit->spaces[space].lists[TYPES_L1];
	room = free_list_bottom(list, base);
	if (reach > room) {
		*ret_failure = refit_failure(to, TYPES_L1, reach, list);
		if (ret_failure->why != REFIT_LARGE)
			ret_failure->why = REFIT_CLASH;
		ret_failure->largest = room;
		return REFIT_FAILED;
	}
	refit_note_margin(&refit->margins[REFIT_CIRCULAR], to, room - reach, NULL, moment);
	return 0;
}

static int refit_take_block(struct refit *refit, uint32_t slot, const struct refit_buffer *buffer,
			    uint64_t moment, struct refit_failure *ret_failure)
{
	uint32_t memory = refit_memory(refit, buffer);
	const struct snapshot_window *from = &refit->rules.from[memory];
	const struct snapshot_window *to = &refit->rules.to[memory];
	int64_t space = refit_space(refit, buffer->space);
	struct refit_block block = {.memory = memory};
	struct free_list *list;
	bool is_guess;
	int r;

	if (space < 0)
		return (int)space;
	list = &refit->spaces[space].lists[memory];
	block.space = (uint32_t)space;
	block.length = refit_need(from, to, buffer, &is_guess);
	if (refit_is_sharded(&buffer->shape, from) && buffer->shape.banks > to->banks) {
		*ret_failure = refit_failure(to, memory, block.length, list);
		ret_failure->why = REFIT_SHARDS;
		ret_failure->shards = buffer->shape.banks;
		return REFIT_FAILED;
	}
	if (!free_list_take(list, block.length, refit_is_top_down(buffer), refit->rules.fit,
			    &block.address)) {
		*ret_failure = refit_failure(to, memory, block.length, list);
		return REFIT_FAILED;
	}
	r = refit_keep(refit, slot, &block);
	if (r < 0)
		return r;
	refit->counts.taken++;
	refit->counts.guessed += is_guess;
	refit->counts.same += block.address == buffer->address;
	refit_note_margin(&refit->margins[memory], to, list->free, list, moment);
	return 0;
}

int refit_take(struct refit *refit, uint32_t slot, const struct refit_buffer *buffer,
	       uint64_t moment, struct refit_failure *ret_failure)
{
	int r = refit_give(refit, slot);

	if (r < 0 || refit_is_elsewhere(buffer))
		return r;
	if (!refit->rules.to[refit_memory(refit, buffer)].size) {
		refit->counts.unjudged++;
		return 0;
	}
	if (refit_is_circular(buffer))
		return refit_take_circular(refit, buffer, moment, ret_failure);
	return refit_take_block(refit, slot, buffer, moment, ret_failure);
}

int refit_has_room(struct refit *refit, const struct refit_buffer *buffer)
{
	const struct snapshot_window *from, *to;
	uint32_t memory;
	int64_t space;
	bool is_guess;

	/* Where circular buffers would begin is not known. */
	if (buffer->type >= BOOK_TYPES || refit_is_circular(buffer))
		return -ENODATA;
	memory = refit_memory(refit, buffer);
	from = &refit->rules.from[memory];
	to = &refit->rules.to[memory];
	space = to->size ? refit_space(refit, buffer->space) : -ENODATA;
	if (space < 0)
		return (int)space;
	return free_list_has(&refit->spaces[space].lists[memory],
			     refit_need(from, to, buffer, &is_guess));
}
