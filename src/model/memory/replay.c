/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A free list for each memory of each space, and for each slot of the book's table what it has taken
 * from one of them.
 */

#include "model/memory/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/merge.h"
#include "model/types.h"

#define REPLAY_OWNS_DATA 0x01u
#define REPLAY_ELSEWHERE (0x02u | SNAPSHOT_FLAG_ALIAS) /* at an address that was passed in */

/* One allocator of the process. */
struct replay_space {
	uint32_t number;
	struct free_list lists[REPLAY_MEMORIES];
};

struct replay_block {
	uint64_t address;
	uint64_t length; /* 0 = the slot has taken nothing */
	uint32_t space;  /* index */
	uint32_t memory;
};

struct replay {
	struct replay_rules rules;
	struct replay_space *spaces;
	size_t space_count, space_capacity;
	struct replay_block *blocks; /* by slot */
	size_t block_count, block_capacity;
	struct replay_margin margins[REPLAY_MARGINS];
	struct replay_counts counts;
};

struct replay *replay_new(const struct replay_rules *rules)
{
	struct replay *replay = calloc(1, sizeof(*replay));

	if (replay)
		replay->rules = *rules;
	return replay;
}

static void replay_space_deinit(struct replay_space *space)
{
	for (uint32_t memory = 0; memory < REPLAY_MEMORIES; memory++)
		free_list_deinit(&space->lists[memory]);
}

struct replay *replay_free(struct replay *replay)
{
	if (!replay)
		return NULL;
	for (size_t i = 0; i < replay->space_count; i++)
		replay_space_deinit(&replay->spaces[i]);
	free(replay->spaces);
	free(replay->blocks);
	free(replay);
	return NULL;
}

const struct replay_margin *replay_margins(const struct replay *replay)
{
	return replay->margins;
}

const struct replay_counts *replay_counts(const struct replay *replay)
{
	return &replay->counts;
}

/* Addresses and lengths are aligned, so only what lies between aligned addresses counts. */
static int replay_list_init(struct free_list *list, const struct snapshot_window *window)
{
	uint64_t begin, end;

	if (!window->size)
		return free_list_init(list, 0, 0);
	begin = bits_align_up(window->base, window->alignment);
	end = bits_align_down(window->base + window->size, window->alignment);
	return free_list_init(list, begin, end > begin ? end - begin : 0);
}

/* There are few of them. The index of the space, or -ENOMEM. */
static int64_t replay_space(struct replay *replay, uint32_t number)
{
	struct replay_space *spaces, *space;
	int r = 0;

	for (size_t i = 0; i < replay->space_count; i++) {
		if (replay->spaces[i].number == number)
			return (int64_t)i;
	}
	spaces = array_grow(replay->spaces, &replay->space_capacity, replay->space_count + 1,
			    sizeof(*spaces));
	if (!spaces)
		return -ENOMEM;
	replay->spaces = spaces;
	space = &spaces[replay->space_count];
	*space = (struct replay_space){.number = number};
	for (uint32_t memory = 0; r == 0 && memory < REPLAY_MEMORIES; memory++)
		r = replay_list_init(&space->lists[memory], &replay->rules.to[memory]);
	if (r < 0) {
		replay_space_deinit(space);
		return r;
	}
	replay->counts.spaces++;
	return (int64_t)replay->space_count++;
}

/* Kernels' binaries lie in DRAM or in L1: the number of banks decides. */
static uint32_t replay_memory(const struct replay *replay, const struct replay_buffer *buffer)
{
	uint32_t banks = buffer->shape.banks;

	if (buffer->type == TYPES_CB)
		return TYPES_L1;
	if (buffer->type != TYPES_KERNEL)
		return buffer->type;
	return banks && banks != replay->rules.from[TYPES_DRAM].banks &&
			       banks == replay->rules.from[TYPES_L1].banks
		       ? TYPES_L1
		       : TYPES_DRAM;
}

static bool replay_is_top_down(const struct replay_buffer *buffer)
{
	if (buffer->shape.flags & (BOOK_SHAPE_BOTTOM_UP | BOOK_SHAPE_TOP_DOWN))
		return buffer->shape.flags & BOOK_SHAPE_TOP_DOWN;
	return buffer->type == TYPES_L1 || buffer->type == TYPES_L1_SMALL;
}

/* Saturates. */
static uint64_t replay_align(const struct snapshot_window *window, uint64_t value)
{
	return value > UINT64_MAX - window->alignment ? UINT64_MAX
						      : bits_align_up(value, window->alignment);
}

/* Pages are dealt to the banks in turn, and every bank keeps room for as many. */
static uint64_t replay_spread(const struct snapshot_window *window, uint64_t size, uint64_t page)
{
	uint64_t pages = size / page + (size % page != 0);
	uint64_t length;

	pages = pages / window->banks + (pages % window->banks != 0);
	return __builtin_mul_overflow(pages, replay_align(window, page), &length) ? UINT64_MAX
										  : length;
}

/* A part of the banks, each with its own piece, whatever the card. */
static bool replay_is_sharded(const struct book_shape *shape, const struct snapshot_window *from)
{
	if (!shape->banks || !shape->size_per_bank || shape->flags & BOOK_SHAPE_INTERLEAVED)
		return false;
	return shape->flags & BOOK_SHAPE_SHARDED || shape->banks < from->banks;
}

/* Bytes in each bank; UINT64_MAX = more than there can be. */
static uint64_t replay_need(const struct snapshot_window *from, const struct snapshot_window *to,
			    const struct replay_buffer *buffer, bool *ret_is_guess)
{
	const struct book_shape *shape = &buffer->shape;
	uint64_t all = buffer->size;

	*ret_is_guess = false;
	if (replay_is_sharded(shape, from))
		return replay_align(to, shape->size_per_bank);
	if (shape->page_size)
		return replay_spread(to, buffer->size, shape->page_size);
	if (shape->size_per_bank && (!shape->banks || shape->banks == to->banks))
		return replay_align(to, shape->size_per_bank);
	*ret_is_guess = true;
	if (shape->size_per_bank &&
	    __builtin_mul_overflow(shape->size_per_bank, (uint64_t)shape->banks, &all))
		return UINT64_MAX;
	return replay_align(to, all / to->banks + (all % to->banks != 0));
}

/* What takes nothing from an allocator. */
static bool replay_is_elsewhere(const struct replay_buffer *buffer)
{
	return buffer->type >= BOOK_TYPES || !buffer->size || buffer->flags & REPLAY_ELSEWHERE;
}

/* Programs place their circular buffers themselves, from the bottom of L1. */
static bool replay_is_circular(const struct replay_buffer *buffer)
{
	return buffer->type == TYPES_CB && !(buffer->flags & REPLAY_OWNS_DATA);
}

static void replay_note_margin(struct replay_margin *margin, const struct snapshot_window *window,
			       uint64_t least, const struct free_list *list, uint64_t moment)
{
	if (margin->is_known && margin->free <= least)
		return;
	*margin = (struct replay_margin){
		.is_known = true,
		.size = window->size,
		.free = least,
		.largest = list ? free_list_largest(list) : least,
		.banks = window->banks,
		.moment = moment,
	};
}

static int replay_keep(struct replay *replay, uint32_t slot, const struct replay_block *block)
{
	struct replay_block *blocks;

	if (slot >= replay->block_count) {
		blocks = array_grow(replay->blocks, &replay->block_capacity, (size_t)slot + 1,
				    sizeof(*blocks));
		if (!blocks)
			return -ENOMEM;
		memset(&blocks[replay->block_count], 0,
		       ((size_t)slot + 1 - replay->block_count) * sizeof(*blocks));
		replay->blocks = blocks;
		replay->block_count = (size_t)slot + 1;
	}
	replay->blocks[slot] = *block;
	return 0;
}

int replay_give(struct replay *replay, uint32_t slot)
{
	struct replay_block *block;
	int r;

	if (slot >= replay->block_count || !replay->blocks[slot].length)
		return 0;
	block = &replay->blocks[slot];
	r = free_list_give(&replay->spaces[block->space].lists[block->memory], block->address,
			   block->length);
	if (r == 0)
		*block = (struct replay_block){0};
	return r;
}

static enum replay_why replay_why(const struct replay_failure *failure)
{
	if (failure->need > failure->size)
		return REPLAY_LARGE;
	return failure->need > failure->free ? REPLAY_FULL : REPLAY_CUT;
}

static struct replay_failure replay_failure(const struct snapshot_window *window, uint32_t memory,
					    uint64_t need, const struct free_list *list)
{
	struct replay_failure failure = {
		.memory = memory,
		.need = need,
		.free = list->free,
		.largest = free_list_largest(list),
		.size = bits_align_down(window->base + window->size, window->alignment) -
			bits_align_up(window->base, window->alignment),
		.banks = window->banks,
	};

	failure.why = replay_why(&failure);
	return failure;
}

/* They lie where the program put them, at the same distance from the bottom, and must end below L1's buffers. */
static int replay_take_circular(struct replay *replay, const struct replay_buffer *buffer,
				uint64_t moment, struct replay_failure *ret_failure)
{
	const struct snapshot_window *from = &replay->rules.from[TYPES_L1];
	const struct snapshot_window *to = &replay->rules.to[TYPES_L1];
	uint64_t base = bits_align_up(to->base, to->alignment), room, reach;
	int64_t space = replay_space(replay, buffer->space);
	const struct free_list *list;

	if (space < 0)
		return (int)space;
	if (!from->size || buffer->address < from->base || !buffer->shape.size_per_bank ||
	    __builtin_add_overflow(buffer->address - from->base, buffer->shape.size_per_bank,
				   &reach)) {
		replay->counts.unjudged++;
		return 0;
	}
	list = &replay->spaces[space].lists[TYPES_L1];
	room = free_list_bottom(list, base);
	if (reach > room) {
		*ret_failure = replay_failure(to, TYPES_L1, reach, list);
		if (ret_failure->why != REPLAY_LARGE)
			ret_failure->why = REPLAY_CLASH;
		ret_failure->largest = room;
		return REPLAY_FAILED;
	}
	replay_note_margin(&replay->margins[REPLAY_CIRCULAR], to, room - reach, NULL, moment);
	return 0;
}

static int replay_take_block(struct replay *replay, uint32_t slot,
			     const struct replay_buffer *buffer, uint64_t moment,
			     struct replay_failure *ret_failure)
{
	uint32_t memory = replay_memory(replay, buffer);
	const struct snapshot_window *from = &replay->rules.from[memory];
	const struct snapshot_window *to = &replay->rules.to[memory];
	int64_t space = replay_space(replay, buffer->space);
	struct replay_block block = {.memory = memory};
	struct free_list *list;
	bool is_guess;
	int r;

	if (space < 0)
		return (int)space;
	list = &replay->spaces[space].lists[memory];
	block.space = (uint32_t)space;
	block.length = replay_need(from, to, buffer, &is_guess);
	if (replay_is_sharded(&buffer->shape, from) && buffer->shape.banks > to->banks) {
		*ret_failure = replay_failure(to, memory, block.length, list);
		ret_failure->why = REPLAY_SHARDS;
		ret_failure->shards = buffer->shape.banks;
		return REPLAY_FAILED;
	}
	if (!free_list_take(list, block.length, replay_is_top_down(buffer), replay->rules.fit,
			    &block.address)) {
		*ret_failure = replay_failure(to, memory, block.length, list);
		return REPLAY_FAILED;
	}
	r = replay_keep(replay, slot, &block);
	if (r < 0)
		return r;
	replay->counts.taken++;
	replay->counts.guessed += is_guess;
	replay_note_margin(&replay->margins[memory], to, list->free, list, moment);
	return 0;
}

int replay_take(struct replay *replay, uint32_t slot, const struct replay_buffer *buffer,
		uint64_t moment, struct replay_failure *ret_failure)
{
	int r = replay_give(replay, slot);

	if (r < 0 || replay_is_elsewhere(buffer))
		return r;
	if (!replay->rules.to[replay_memory(replay, buffer)].size) {
		replay->counts.unjudged++;
		return 0;
	}
	if (replay_is_circular(buffer))
		return replay_take_circular(replay, buffer, moment, ret_failure);
	return replay_take_block(replay, slot, buffer, moment, ret_failure);
}

bool replay_has_room(struct replay *replay, const struct replay_buffer *buffer)
{
	uint32_t memory = replay_memory(replay, buffer);
	const struct snapshot_window *to =
		memory < REPLAY_MEMORIES ? &replay->rules.to[memory] : NULL;
	int64_t space = to && to->size ? replay_space(replay, buffer->space) : -1;
	bool is_guess;

	if (space < 0)
		return false;
	return free_list_has(&replay->spaces[space].lists[memory],
			     replay_need(&replay->rules.from[memory], to, buffer, &is_guess));
}
