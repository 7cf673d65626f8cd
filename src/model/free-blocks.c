/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Holes are what lies between sorted blocks, from the end of what came before to the begin of what comes next;
 * of each only what is left after aligning both ends counts, because nothing else can be had of it.
 *
 * Aliases and buffers at addresses that their owner chose take nothing from the allocator: they lie in memory
 * that was handed out to others, or that was never to be handed out.
 */

#include "model/free-blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/card.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define HOLES_FLAGS_ELSEWHERE (UINT32_C(1) << 1 | UINT32_C(1) << 2) /* preallocated, alias */

bool holes_is_memory(uint32_t type)
{
	return type <= TYPES_TRACE;
}

/* Memory cut off the top of another: its type, or BOOK_TYPES for none. */
static uint32_t holes_top(uint32_t type)
{
	if (type == TYPES_DRAM)
		return TYPES_TRACE;
	return type == TYPES_L1 ? TYPES_L1_SMALL : BOOK_TYPES;
}

/* As declared, else as such cards are. */
static struct snapshot_window holes_declared(const struct snapshot_facts *facts, uint32_t type)
{
	struct snapshot_window window = facts->windows[type];
	const struct card_facts *card = card_find(facts->card);

	if (window.size && window.banks)
		return window;
	if (card && type == TYPES_DRAM)
		return (struct snapshot_window){0, card->dram_bank_size, card->dram_banks, 0};
	if (card && type == TYPES_L1)
		return (struct snapshot_window){0, card->l1_per_core, card->cores, 0};
	return (struct snapshot_window){0};
}

/* Without what others have of it; @ret_holes has the alignment that addresses have at least. */
static int holes_window(const struct snapshot_facts *facts, uint32_t type, struct holes *ret_holes)
{
	struct snapshot_window window = holes_declared(facts, type);
	uint32_t top = holes_top(type);
	uint64_t end;

	if (!window.size || !window.banks || __builtin_add_overflow(window.base, window.size, &end))
		return HOLES_UNKNOWN;
	if (top < BOOK_TYPES && facts->windows[top].size &&
	    facts->windows[top].base > window.base && facts->windows[top].base < end)
		window.size = facts->windows[top].base - window.base;
	/* Alignment is a process's word: a power of two that leaves something, or none. */
	if (!window.alignment || window.alignment & (window.alignment - 1) ||
	    window.alignment > window.size)
		window.alignment = 1;
	*ret_holes = (struct holes){
		.base = window.base,
		.size = window.size,
		.banks = window.banks,
		.alignment = window.alignment,
	};
	return 0;
}

/* Which memory a buffer lies in; BOOK_TYPES if that cannot be told. */
static uint32_t holes_memory(const struct snapshot_buffer *buffer, const struct snapshot_part *part)
{
	const struct snapshot_window *windows = part->facts.windows;

	if (buffer->type == TYPES_CB)
		return TYPES_L1;
	if (buffer->type != TYPES_KERNEL)
		return buffer->type;
	/* Binaries lie in DRAM or in L1: as many banks as one of them has tell. */
	if (buffer->banks && buffer->banks == windows[TYPES_DRAM].banks)
		return TYPES_DRAM;
	if (buffer->banks && buffer->banks == windows[TYPES_L1].banks)
		return TYPES_L1;
	return BOOK_TYPES;
}

static uint64_t holes_align_up(const struct holes *holes, uint64_t value)
{
	uint64_t up;

	return __builtin_add_overflow(value, holes->alignment - 1, &up)
		       ? UINT64_MAX - UINT64_MAX % holes->alignment
		       : bits_align_down(up, holes->alignment);
}

/* Bytes that @size takes in each bank, in pages of @page_size; UINT64_MAX = more than can be. */
static uint64_t holes_need(const struct holes *holes, uint64_t size, uint64_t page_size)
{
	uint64_t pages, need;

	if (!page_size)
		page_size = holes->alignment;
	pages = size / page_size + (size % page_size != 0);
	pages = pages / holes->banks + (pages % holes->banks != 0);
	return __builtin_mul_overflow(pages, holes_align_up(holes, page_size), &need) ? UINT64_MAX
										      : need;
}

/* Puts a buffer among the blocks, if it lies here. */
static void holes_place(struct holes *holes, const struct snapshot_buffer *buffer)
{
	uint64_t length = buffer->size_per_bank, end;

	if (!length) {
		length = holes_need(holes, buffer->size, 0);
		holes->guessed++;
	}
	if (__builtin_add_overflow(buffer->address, length, &end) ||
	    buffer->address < holes->base || end > holes->base + holes->size) {
		holes->unplaced++;
		return;
	}
	holes->blocks[holes->block_count++] = (struct holes_block){buffer->address, length, buffer};
}

/* The first buffer that does not come before (@process, @device). */
static size_t holes_first(const struct snapshot *snapshot, uint32_t process, uint32_t device)
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

static int holes_collect(const struct snapshot *snapshot, uint32_t process,
			 const struct snapshot_part *part, uint32_t type, struct holes *holes)
{
	size_t first = holes_first(snapshot, process, part->device);
	size_t end = holes_first(snapshot, process, part->device + 1);
	size_t count = end > first ? end - first : 0;

	holes->blocks = calloc(count + 1, sizeof(*holes->blocks));
	holes->holes = calloc(count + 1, sizeof(*holes->holes));
	if (!holes->blocks || !holes->holes)
		return -ENOMEM;
	for (size_t i = first; i < end; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (holes_memory(buffer, part) == type && !(buffer->flags & HOLES_FLAGS_ELSEWHERE))
			holes_place(holes, buffer);
	}
	return 0;
}

/* What can be had between two places. */
static struct holes_hole holes_between(const struct holes *holes, uint64_t begin, uint64_t end)
{
	struct holes_hole hole = {.address = holes_align_up(holes, begin)};
	uint64_t last = bits_align_down(end, holes->alignment);

	hole.length = hole.address < last ? last - hole.address : 0;
	return hole;
}

static void holes_list(struct holes *holes)
{
	uint64_t at = holes->base, end = holes->base + holes->size;

	for (size_t i = 0; i <= holes->block_count; i++) {
		uint64_t next = i < holes->block_count ? holes->blocks[i].address : end;
		struct holes_hole hole = holes_between(holes, at, next);

		if (hole.length) {
			holes->holes[holes->hole_count++] = hole;
			holes->free += hole.length;
			holes->largest = bits_max(holes->largest, hole.length);
		}
		if (i == holes->block_count)
			break;
		next += holes->blocks[i].length;
		holes->used += next > at ? next - bits_max(at, holes->blocks[i].address) : 0;
		at = bits_max(at, next);
	}
}

int holes_find(const struct snapshot *snapshot, uint32_t process, const struct snapshot_part *part,
	       uint32_t type, struct holes *ret_holes)
{
	CLEANUP(holes_deinit) struct holes holes = HOLES_NULL;
	int r = holes_is_memory(type) ? holes_window(&part->facts, type, &holes) : -EINVAL;

	if (r != 0)
		return r;
	r = holes_collect(snapshot, process, part, type, &holes);
	if (r < 0)
		return r;
	holes_list(&holes);
	*ret_holes = holes;
	holes = HOLES_NULL;
	return 0;
}

void holes_deinit(struct holes *holes)
{
	free(holes->blocks);
	free(holes->holes);
	*holes = HOLES_NULL;
}

double holes_fragmentation(const struct holes *holes)
{
	return holes->free ? 1 - (double)holes->largest / (double)holes->free : 0;
}

/* Where the room ends that begins before block @i: at the farthest end of all blocks before it. */
static void holes_ends(const struct holes *holes, uint64_t *ends)
{
	uint64_t at = holes->base;

	for (size_t i = 0; i < holes->block_count; i++) {
		ends[i] = at;
		at = bits_max(at, holes->blocks[i].address + holes->blocks[i].length);
	}
}

/*
 * The run of blocks whose going makes room, with the fewest bytes. As the first one of it moves up, the last one
 * never moves down, so each is looked at twice.
 */
static void holes_clear(const struct holes *holes, struct holes_fit *fit)
{
	CLEANUP_FREE uint64_t *ends = calloc(holes->block_count + 1, sizeof(*ends));
	uint64_t bytes = 0, best = UINT64_MAX;
	size_t last = 0; /* behind the run */

	if (!ends)
		return; /* then nobody is named */
	holes_ends(holes, ends);
	for (size_t first = 0; first < holes->block_count; first++) {
		while (last <= holes->block_count) {
			uint64_t end = last < holes->block_count ? holes->blocks[last].address
								 : holes->base + holes->size;

			if (last > first &&
			    holes_between(holes, ends[first], end).length >= fit->need)
				break;
			if (last == holes->block_count)
				return;
			bytes = merge_add(bytes, holes->blocks[last++].length);
		}
		if (bytes < best) {
			best = bytes;
			fit->first = first;
			fit->count = last - first;
			fit->bytes = bytes;
		}
		bytes -= bits_min(bytes, holes->blocks[first].length);
	}
}

void holes_fit(const struct holes *holes, uint64_t size, uint64_t page_size, bool top,
	       struct holes_fit *ret_fit)
{
	struct holes_fit fit = {.need = holes_need(holes, size, page_size)};
	struct holes_hole whole = holes_between(holes, holes->base, holes->base + holes->size);

	fit.verdict = fit.need > whole.length  ? HOLES_LARGE
		      : fit.need > holes->free ? HOLES_FULL
					       : HOLES_CUT;
	for (size_t i = 0; fit.verdict == HOLES_CUT && i < holes->hole_count; i++) {
		const struct holes_hole *hole = &holes->holes[top ? holes->hole_count - 1 - i : i];

		if (hole->length < fit.need)
			continue;
		fit.verdict = HOLES_FITS;
		fit.address = top ? hole->address + hole->length - fit.need : hole->address;
		fit.length = hole->length;
	}
	if (fit.verdict == HOLES_CUT || fit.verdict == HOLES_FULL)
		holes_clear(holes, &fit);
	*ret_fit = fit;
}
