/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#pragma once

/*
 * How a pair of counter blocks is read while its owner overwrites it. The module and the reader in
 * src/book both include this file, so that they cannot disagree. It needs only fixed-width
 * integers, and lies here because dkms builds the module from this folder alone.
 *
 * The owner writes the two blocks in turn. In each it writes the figures first and the event number
 * last, with release; and it publishes the next event, with a store barrier, before it touches the
 * other block. So the block with the larger number is complete, and it stays so until the other one
 * has an even larger number. That is what has to be checked after the copy. The copied block's own
 * number proves nothing: it is the last word to change.
 */

#ifdef __KERNEL__
#include <asm/barrier.h>
#include <linux/compiler.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif

/* A test may replace both, to interleave between the loads. */
#ifndef BLOCK_LOAD
#ifdef __KERNEL__
#define BLOCK_LOAD(word) READ_ONCE(*(word))
#define BLOCK_LOAD_BARRIER() smp_rmb()
#else
#define BLOCK_LOAD(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#define BLOCK_LOAD_BARRIER() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif
#endif

#define BLOCK_WORDS 8
#define BLOCK_NUMBER 7 /* the last word: the last event that the block includes */

/*
 * Which block of a pair is complete, by their numbers. Both are 0 before the first event, which
 * goes to block 1.
 */
static inline unsigned int block_current(uint64_t first, uint64_t second)
{
	return second > first;
}

static inline uint64_t block_newest(uint64_t first, uint64_t second)
{
	return block_current(first, second) ? second : first;
}

/* Copies the complete block of @pair. False: the owner may have overwritten it; try again. */
static inline bool block_read(const uint64_t *pair, uint64_t ret_block[BLOCK_WORDS])
{
	uint64_t first = BLOCK_LOAD(&pair[BLOCK_NUMBER]);
	uint64_t second = BLOCK_LOAD(&pair[BLOCK_WORDS + BLOCK_NUMBER]);
	uint64_t newest = block_newest(first, second);
	const uint64_t *block = pair + block_current(first, second) * BLOCK_WORDS;
	int i;

	/* Pairs with the release in shard_store_hot(): the figures are as new as the number. */
	BLOCK_LOAD_BARRIER();
	for (i = 0; i < BLOCK_NUMBER; i++)
		ret_block[i] = BLOCK_LOAD(&block[i]);
	ret_block[BLOCK_NUMBER] = newest;
	/*
	 * Pairs with the barrier in shard_publish(): if a figure is newer, so is the other number.
	 */
	BLOCK_LOAD_BARRIER();
	first = BLOCK_LOAD(&pair[BLOCK_NUMBER]);
	second = BLOCK_LOAD(&pair[BLOCK_WORDS + BLOCK_NUMBER]);
	return block_newest(first, second) == newest;
}
