/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * The few offsets in a book that the kernel reads. All of them are fixed, in every version of the
 * format: nothing in a book can make the kernel read elsewhere. docs/book-format.md has the rest;
 * src/source/host/kernel-test.c checks these numbers against the library's layout.
 */

#define LAYOUT_UNIT 0x10000UL /* sizes are multiples of it */
#define LAYOUT_SIZE_MIN 0xb00000ULL
#define LAYOUT_SIZE_MAX 0x100000000ULL

#define LAYOUT_SHARDS 0x200000UL
#define LAYOUT_SHARD_SIZE 0x2000UL

/* In a shard. */
#define LAYOUT_INEXACT 16 /* u64: bit type: at least; bit 8 + type: at most */
#define LAYOUT_STATE 76   /* u32: 1 = the shard is in use */
#define LAYOUT_HOT 128    /* for each type a pair of counter blocks; kernel/block.h reads them */
#define LAYOUT_HOT_SIZE 64

/* In a block, as u64. */
#define LAYOUT_BYTES 0
#define LAYOUT_BUFFERS 1
#define LAYOUT_PEAK 2
#define LAYOUT_ALLOCS 4
#define LAYOUT_FREES 5
