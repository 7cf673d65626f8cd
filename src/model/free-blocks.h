/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a memory is cut up: the blocks in use and the holes between them, as the allocator of the process has
 * them. Addresses are per bank and valid in all of the banks at once, so one list tells of all of them, and
 * a buffer takes as much as its share in one bank. Each process has an allocator of its own: what others
 * hold on the same device is no block here.
 *
 * There are five such memories: DRAM (with kernels' binaries), L1 (with circular buffers), SYSTEM_MEMORY, and
 * TRACE and L1_SMALL, which are cut off the tops of DRAM and L1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct snapshot_buffer;
struct snapshot_part;

enum free_blocks_outcome {
	FREE_BLOCKS_UNKNOWN = 1, /* nobody has said where this memory lies */
};

/* In use; buffers that meet or overlap are still blocks of their own. */
struct free_blocks_block {
	uint64_t address;
	uint64_t length;                      /* bytes in each bank */
	const struct snapshot_buffer *buffer; /* the snapshot's */
};

struct free_blocks_hole {
	uint64_t address; /* aligned */
	uint64_t length;  /* bytes in each bank that can be had at an aligned address */
};

struct free_blocks {
	uint64_t base;
	uint64_t size; /* in each bank, likewise all that follow */
	uint32_t banks;
	uint32_t alignment;
	uint64_t used; /* by blocks; where they overlap once */
	uint64_t free;
	uint64_t largest;  /* hole */
	uint64_t guessed;  /* blocks whose share of a bank was not told: spread evenly */
	uint64_t unplaced; /* buffers that lie elsewhere, or nobody knows where */
	struct free_blocks_block *blocks; /* ours, by address */
	size_t block_count;
	struct free_blocks_hole *holes; /* ours, by address */
	size_t hole_count;
};

#define FREE_BLOCKS_NULL     \
	(struct free_blocks) \
	{                    \
		0            \
	}

/*
 * The memory of @type that process @process has of @part; the snapshot has its buffers, with shapes and sorted by
 * SNAPSHOT_BY_PLACE. 0, FREE_BLOCKS_UNKNOWN, -EINVAL for a type that is no memory of its own, or -ENOMEM.
 */
int free_blocks_find(const struct snapshot *snapshot, uint32_t process,
		     const struct snapshot_part *part, uint32_t type,
		     struct free_blocks *ret_holes);
void free_blocks_deinit(struct free_blocks *free_blocks);

/* Of 1: how much of what is free could not be had in one piece. */
double free_blocks_fragmentation(const struct free_blocks *free_blocks);

enum free_blocks_verdict {
	FREE_BLOCKS_FITS = 0,
	FREE_BLOCKS_FULL = 1,  /* even without gaps there would not be enough */
	FREE_BLOCKS_CUT = 2,   /* there would, but in no hole */
	FREE_BLOCKS_LARGE = 3, /* not even were the memory empty */
};

struct free_blocks_fit {
	enum free_blocks_verdict verdict;
	uint64_t need;    /* bytes in each bank */
	uint64_t address; /* of the place that the allocator would take, if it fits */
	uint64_t length;  /* of the hole that it is in */
	/* If not: the blocks that would have to go, so that the fewest bytes do. */
	size_t first, count;
	uint64_t bytes; /* in each bank */
};

/*
 * Whether @size bytes in pages of @page_size fit (0: as small as can be, so that they spread evenly). @top: the
 * allocator takes places from the upper end, as it does for L1.
 */
void free_blocks_fit(const struct free_blocks *free_blocks, uint64_t size, uint64_t page_size,
		     bool top, struct free_blocks_fit *ret_fit);

/* Whether a type is one of the five. */
bool free_blocks_is_memory(uint32_t type);
