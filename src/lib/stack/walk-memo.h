/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The words of the stack that decided where a walk went: each return address, and each saved frame
 * pointer that a later frame was found by. A walk is a function of these words, of where it begins, of
 * the rules and pins, and of settings of the book. So if all of them are the same it would take the
 * same way, and comparing them replaces it. The words do not depend on each other, so the processor
 * compares many at once, where a walk waits for each frame.
 *
 * A saved register that nothing was found by is left out: in code without frame pointers it is a
 * variable, different for each call.
 *
 * Words are compared in the order in which the walk read them, up to the first that differs. Where a
 * word is follows from those before it, so nothing is read that a walk would not read now.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stack/fp-or-rule.h"
#include "lib/stack/walk.h"

#define WALK_MEMO_WORDS 48u /* two for each of 16 frames, and some; longer ones are walked */
#define WALK_MEMO_STEP 4u   /* compared in each turn of a loop, so that its end is predictable */

struct walk_memo {
	struct walk_start start;
	uint32_t version; /* of the rules and pins (lib/stack/fp-or-rule.h) */
	uint32_t count;   /* above WALK_MEMO_WORDS: there is more to it than words */
	uint32_t offsets[WALK_MEMO_WORDS]; /* from the frame */
	uintptr_t values[WALK_MEMO_WORDS];
};

static inline void walk_memo_begin(struct walk_memo *memo, struct walk_start start)
{
	memo->start = start;
	memo->version = fp_or_rule_version();
	memo->count = 0;
}

/* The walk depends on more than can be noted. */
static inline void walk_memo_spoil(struct walk_memo *memo)
{
	memo->count = WALK_MEMO_WORDS + 1;
}

/* The walk depends on the word at @at, which is @value. */
static inline void walk_memo_note(struct walk_memo *memo, uintptr_t at, uintptr_t value)
{
	uintptr_t offset = at - (uintptr_t)memo->start.frame;
	uint32_t i = memo->count;

	if (i >= WALK_MEMO_WORDS || offset > UINT32_MAX) {
		walk_memo_spoil(memo);
		return;
	}
	memo->offsets[i] = (uint32_t)offset;
	memo->values[i] = value;
	memo->count = i + 1;
}

/* After a walk that has found something. Return: whether all it depended on is noted. */
static inline bool walk_memo_end(struct walk_memo *memo)
{
	uint32_t i = memo->count;

	if (i > WALK_MEMO_WORDS)
		return false;
	for (; i % WALK_MEMO_STEP; i++) {
		memo->offsets[i] = memo->offsets[i - 1];
		memo->values[i] = memo->values[i - 1];
	}
	memo->count = i;
	return true;
}

static inline __attribute__((no_sanitize("address"))) bool
walk_memo_is_same(const struct walk_memo *memo, const char *frame, uint32_t i)
{
	const char *at = frame + memo->offsets[i];

	return *(const uintptr_t *)(const void *)at == memo->values[i];
}

/* Whether a walk from @start would find the same again. After walk_memo_end(). */
static inline __attribute__((no_sanitize("address"))) bool
walk_memo_holds(const struct walk_memo *memo, struct walk_start start)
{
	const char *frame = start.frame;

	if (memo->start.frame != frame || memo->start.sp != start.sp ||
	    memo->version != fp_or_rule_version())
		return false;
	for (uint32_t i = 0; i < memo->count; i += WALK_MEMO_STEP) {
		if (!walk_memo_is_same(memo, frame, i) || !walk_memo_is_same(memo, frame, i + 1) ||
		    !walk_memo_is_same(memo, frame, i + 2) ||
		    !walk_memo_is_same(memo, frame, i + 3))
			return false;
	}
	return true;
}
