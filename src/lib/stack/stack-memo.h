/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One of a thread's last stacks, and what to compare instead of walking it again: the words that the
 * walk depended on (lib/stack/walk-memo.h), and what its id depends on beside the addresses, as in the
 * table of known stacks.
 *
 * A thread that leaves a call by siglongjmp() drops all its memos, so half a memo is never used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "lib/stack/unload-guard.h"
#include "lib/stack/walk-memo.h"

/*
 * A memo is compared until so many other stacks have come in a row, then another walk is noted. If
 * that is of no use either, the next time is twice as far away, because comparing and noting only add
 * to a walk: stacks that never repeat cost little more than the walk.
 */
#define STACK_MEMO_PATIENCE 4u
#define STACK_MEMO_PATIENCE_MAX 1024u

struct stack_memo {
	uint64_t guards;   /* of its files that may be unloaded (lib/stack/unload-guard.h) */
	uint64_t certain;  /* those whose frames are certain */
	uint64_t identity; /* of the provider's frames */
	uint32_t generation;
	uint32_t id;     /* 0 = none */
	uint32_t others; /* stacks since it was last noted or used */
	uint32_t limit;  /* of these, until another walk is noted */
	struct walk_memo walk;
} __attribute__((aligned(CACHE_LINE)));

_Static_assert(offsetof(struct stack_memo, walk.offsets) == CACHE_LINE, "the rest is a line");

/* Whether it is worth comparing. */
static inline bool stack_memo_is_live(const struct stack_memo *memo)
{
	return memo->id && memo->others < STACK_MEMO_PATIENCE;
}

/*
 * Whether the stack at @start is this one. A live memo. Guards are bits of the generation in which
 * they were given out, so it is compared first.
 */
static inline bool stack_memo_holds(const struct stack_memo *memo, uint64_t identity,
				    uint32_t generation, struct walk_start start)
{
	return memo->generation == generation && memo->identity == identity &&
	       walk_memo_holds(&memo->walk, start) &&
	       (!memo->guards || unload_guard_hold(memo->guards, memo->certain, generation));
}

static inline void stack_memo_used(struct stack_memo *memo)
{
	memo->others = 0;
	memo->limit = STACK_MEMO_PATIENCE;
}

/*
 * Whether to note this walk. If so there is none until its id is stored: the walk may be one that
 * cannot be noted, or its stack may not be known.
 */
static inline bool stack_memo_begin(struct stack_memo *memo)
{
	if (likely(memo->others < memo->limit)) {
		memo->others++;
		return false;
	}
	memo->id = 0;
	memo->others = 0;
	memo->limit = (uint32_t)bits_min(2 * memo->limit + 1, STACK_MEMO_PATIENCE_MAX);
	return true;
}
