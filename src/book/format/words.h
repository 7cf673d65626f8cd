/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Words of a record that hold several things. */

#include <stdint.h>

/* Bits of a record's meta word. */
#define BOOK_META_REFS_MAX 0xfffffu /* 20 bits; a count that reached it stays there */
#define BOOK_META_TYPE_SHIFT 20
#define BOOK_META_LIVE 0x800000u
#define BOOK_META_FLAGS_SHIFT 24
#define BOOK_META_ALIAS (0x04u << BOOK_META_FLAGS_SHIFT) /* TTMEM_FLAG_ALIAS */

static inline uint32_t book_meta_refs(uint32_t meta)
{
	return meta & BOOK_META_REFS_MAX;
}

static inline uint32_t book_meta_type(uint32_t meta)
{
	return meta >> BOOK_META_TYPE_SHIFT & 7;
}

static inline uint32_t book_meta_flags(uint32_t meta)
{
	return meta >> BOOK_META_FLAGS_SHIFT;
}

static inline uint32_t book_meta(uint32_t type, uint32_t flags, uint32_t refs)
{
	return refs | type << BOOK_META_TYPE_SHIFT | flags << BOOK_META_FLAGS_SHIFT |
	       BOOK_META_LIVE;
}

/*
 * Thread and space in one word, so that a record stays as small as it was. Linux has no thread
 * numbers of more than 22 bits; in books of version 1 the space is therefore 0.
 */
#define BOOK_SPACES 1024u /* allocators of a device */
#define BOOK_SPACE_SHIFT 22
#define BOOK_THREAD_MAX ((1u << BOOK_SPACE_SHIFT) - 1)

_Static_assert(BOOK_SPACES == 1u << (32 - BOOK_SPACE_SHIFT), "a space has the bits that are left");

/* @thread: a thread number of Linux, so at most BOOK_THREAD_MAX. */
static inline uint32_t book_thread_space(uint32_t thread, uint32_t space)
{
	return thread | space << BOOK_SPACE_SHIFT;
}

/* The same space, another thread. */
static inline uint32_t book_other_thread(uint32_t thread_space, uint32_t thread)
{
	return (thread_space & ~BOOK_THREAD_MAX) | thread;
}

static inline uint32_t book_thread(uint32_t thread_space)
{
	return thread_space & BOOK_THREAD_MAX;
}

static inline uint32_t book_space(uint32_t thread_space)
{
	return thread_space >> BOOK_SPACE_SHIFT;
}
