/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a memory is divided: the blocks in use and the free blocks between them, as the process's
 * allocator sees them. Addresses are per bank and valid in all banks at once, so one list covers
 * all banks, and a buffer takes as much as its share in one bank. Each process has its own
 * allocator: what others hold on the same device is not a block here, unless lists were joined.
 *
 * There are five such memories: DRAM (with kernels' binaries), L1 (with circular buffers),
 * SYSTEM_MEMORY, and TRACE and L1_SMALL, which are cut off the tops of DRAM and L1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct snapshot_buffer;
struct snapshot_part;

enum free_blocks_outcome {
	FREE_BLOCKS_UNKNOWN = 1, /* no process has declared where this memory lies */
};

/* In use; adjacent or overlapping buffers are still separate blocks. */
struct free_blocks_block {
	uint64_t address;
	uint64_t length;                      /* bytes in each bank */
	const struct snapshot_buffer *buffer; /* owned by the snapshot */
};

struct free_blocks_hole {
	uint64_t address; /* aligned */
	uint64_t length;  /* bytes in each bank that can be allocated at an aligned address */
};

struct free_blocks {
	uint64_t base;
	uint64_t size; /* in each bank, like all that follow but for occupied */
	uint32_t banks;
	uint32_t alignment;
	uint64_t used; /* by blocks; overlaps count once */
	uint64_t free;
	uint64_t largest;      /* free block */
	uint64_t guessed;      /* blocks whose share per bank is not known: assumed to be even */
	uint64_t unplaced;     /* buffers that lie elsewhere, or whose place is not known */
	uint64_t occupied;     /* by the blocks of which it is known, in all banks together */
	size_t occupied_known; /* how many they are */
	struct free_blocks_block *blocks; /* owned, by address */
	size_t block_count;
	struct free_blocks_hole *holes; /* owned, by address */
	size_t hole_count;
};

#define FREE_BLOCKS_NULL     \
	(struct free_blocks) \
	{                    \
		0            \
	}

/*
 * The memory of @type that process @process has of @part. The snapshot must have its buffers, with
 * shapes and sorted by SNAPSHOT_BY_PLACE. 0, FREE_BLOCKS_UNKNOWN, -EINVAL for a type that is not a
 * separate memory, or -ENOMEM.
 */
int free_blocks_find(const struct snapshot *snapshot, uint32_t process,
		     const struct snapshot_part *part, uint32_t type,
		     struct free_blocks *ret_blocks);
/*
 * The blocks of all @lists, of which the first says where the memory lies; those that have another number
 * of banks are left out, and so is what lies outside. 0 or -ENOMEM.
 */
int free_blocks_join(const struct free_blocks *const *lists, size_t count,
		     struct free_blocks *ret_blocks);

/*
 * Of L1: how far buffers may still grow down until they meet the farthest circular buffer; 0 if they have.
 * False: there are no circular buffers, or it is not known how far they reach.
 */
bool free_blocks_headroom(const struct free_blocks *free_blocks, uint64_t *ret_bytes);

void free_blocks_deinit(struct free_blocks *free_blocks);

/* What all blocks take in all banks together. False: not known. */
bool free_blocks_occupied(const struct free_blocks *free_blocks, uint64_t *ret_bytes);

/* From 0 to 1: how much of the free memory cannot be allocated in one piece. */
double free_blocks_fragmentation(const struct free_blocks *free_blocks);

enum free_blocks_verdict {
	FREE_BLOCKS_FITS = 0,
	FREE_BLOCKS_FULL = 1,  /* not enough free memory in total */
	FREE_BLOCKS_CUT = 2,   /* enough in total, but no free block is large enough */
	FREE_BLOCKS_LARGE = 3, /* too large even for an empty memory */
	FREE_BLOCKS_CORES = 4, /* depends on the number of cores, which was not told */
	/* It would fit for this allocator, but that does not know of other processes: */
	FREE_BLOCKS_HELD = 5,  /* they hold so much that the device has no room for it */
	FREE_BLOCKS_TAKEN = 6, /* the allocator would place it where one of them has a buffer */
};

/* What is asked for. */
struct free_blocks_request {
	uint64_t size;
	uint64_t per_bank;  /* that it takes; 0: follows from the size and the next */
	uint64_t page_size; /* 0: the smallest possible pages, which spread evenly */
	uint32_t cores;     /* a sharded buffer, over so many banks; 0: over all of them */
	bool is_sharded;    /* but it is not known over how many, if cores and per_bank are 0 */
	bool top;           /* the allocator starts from the upper end, as it does for L1 */
};

struct free_blocks_fit {
	enum free_blocks_verdict verdict;
	uint64_t need;    /* bytes in each bank */
	uint64_t address; /* where the allocator would put it, if it fits */
	uint64_t length;  /* of the free block used */
	/* If not: the blocks of this list that would have to be freed, chosen for the fewest bytes. */
	const struct free_blocks *of;
	size_t first, count;
	uint64_t bytes; /* in each bank */
};

/* Whether it fits, as this list alone shows it. @free_blocks must outlive the result. */
void free_blocks_fit(const struct free_blocks *free_blocks,
		     const struct free_blocks_request *request, struct free_blocks_fit *ret_fit);

/*
 * Bytes that a buffer takes in each bank: as it was reported, else spread evenly over the banks of its
 * memory. 0: it is not known how many banks there are.
 */
uint64_t free_blocks_share(const struct snapshot *snapshot, const struct snapshot_part *part,
			   const struct snapshot_buffer *buffer);
