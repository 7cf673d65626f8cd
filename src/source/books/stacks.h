/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stacks of a book, without the rest of it: for followers of its events; and to look up the
 * names of frames before anybody asks for them.
 */

#include <stdint.h>

struct namer;
struct pool;
struct scan_book;
struct stack;
struct stacks;

/* @book and @namer must outlive them. Returns 0 or a negative errno. */
int stacks_new(struct stacks **ret_stacks, struct scan_book *book, struct namer *namer);
struct stacks *stacks_free(struct stacks *stacks);

/* For CLEANUP(). */
static inline void stacks_cleanup(struct stacks **stacks)
{
	stacks_free(*stacks);
}

/* Stack @id, valid until the next call. NULL = none, or no memory. */
const struct stack *stacks_get(struct stacks *stacks, uint32_t id);

/*
 * Asks @namer for the native frames of at most @max stacks from @next on (0 = the first), and
 * advances @next. The names live as long as @texts. Returns how many stacks there were (fewer than
 * @max: that was all for now) or a negative errno.
 */
int stacks_tour(struct scan_book *book, struct namer *namer, struct pool *texts, uint32_t max,
		uint32_t *next);
