/* SPDX-License-Identifier: Apache-2.0 */

/* Each thing that an id depends on beside the walk, and when a memo is given up. */

#include "lib/stack/stack-memo.h"

#include <string.h>

#include "base/testing/unit.h"
#include "lib/process/linked.h"

#define MEMO_ID 7u
#define MEMO_IDENTITY 5u
#define MEMO_GENERATION 3u

static uintptr_t memo_words[2] = {0, 1};

static struct walk_start memo_start(void)
{
	return (struct walk_start){.frame = memo_words, .sp = (uintptr_t)(memo_words + 2)};
}

/* A walk that found one return address. */
static void memo_note(struct stack_memo *ret_memo)
{
	memset(ret_memo, 0, sizeof(*ret_memo));
	assert(stack_memo_begin(ret_memo));
	walk_memo_begin(&ret_memo->walk, memo_start());
	walk_memo_note(&ret_memo->walk, (uintptr_t)&memo_words[1], memo_words[1]);
	assert(walk_memo_end(&ret_memo->walk));
	ret_memo->identity = MEMO_IDENTITY;
	ret_memo->generation = MEMO_GENERATION;
	ret_memo->id = MEMO_ID;
}

static bool memo_holds(const struct stack_memo *memo)
{
	return stack_memo_holds(memo, MEMO_IDENTITY, MEMO_GENERATION, memo_start());
}

UNIT(other_frames_of_the_provider_are_another_stack)
{
	struct stack_memo memo;

	memo_note(&memo);
	assert(stack_memo_is_live(&memo) && memo_holds(&memo));
	assert(!stack_memo_holds(&memo, MEMO_IDENTITY + 1, MEMO_GENERATION, memo_start()));
	assert(!stack_memo_holds(&memo, 0, MEMO_GENERATION, memo_start()));
}

UNIT(another_word_is_another_stack)
{
	struct stack_memo memo;

	memo_note(&memo);
	memo_words[1]++;
	assert(!memo_holds(&memo));
	memo_words[1]--;
	assert(memo_holds(&memo));
}

/* The same bit means another file now, which is still the same; that says nothing of the first. */
UNIT(guards_of_another_generation_are_not_asked)
{
	const uintptr_t here = (uintptr_t)__builtin_return_address(0);
	struct unload_guard_mark mark;
	struct stack_memo memo;

	if (!linked_can_find())
		unit_skip("files cannot be found here");
	unload_guard_mark(0, NULL, "", &mark);
	memo_note(&memo);
	unload_guard_forget(MEMO_GENERATION);
	memo.guards = unload_guard_set(here, &mark);
	assert(memo.guards && memo_holds(&memo));
	unload_guard_forget(MEMO_GENERATION + 1);
	assert(unload_guard_set(here, &mark) == memo.guards);
	assert(!stack_memo_holds(&memo, MEMO_IDENTITY, MEMO_GENERATION + 1, memo_start()));
}

/* Its path is another one than when it was met. */
UNIT(another_file_is_another_stack)
{
	const uintptr_t here = (uintptr_t)__builtin_return_address(0);
	struct unload_guard_mark mark;
	struct stack_memo memo;

	if (!linked_can_find())
		unit_skip("files cannot be found here");
	unload_guard_mark(0, NULL, "/another", &mark);
	memo_note(&memo);
	unload_guard_forget(MEMO_GENERATION);
	memo.guards = unload_guard_set(here, &mark);
	assert(memo.guards && memo_holds(&memo)); /* not certain, so only its place counts */
	memo.certain = memo.guards;
	assert(!memo_holds(&memo));
}

/* How many stacks are walked without notes until one is noted. */
static uint32_t memo_wait(struct stack_memo *memo)
{
	uint32_t n = 0;

	while (!stack_memo_begin(memo)) {
		assert(++n <= STACK_MEMO_PATIENCE_MAX);
		assert(!memo->id || stack_memo_is_live(memo) == (n < STACK_MEMO_PATIENCE));
	}
	/* Until it is stored there is none: this walk may fail. */
	assert(!memo->id && !stack_memo_is_live(memo));
	return n;
}

UNIT(stacks_that_never_repeat_are_noted_less_and_less)
{
	struct stack_memo memo = {0};
	uint32_t last = 0, now;

	assert(memo_wait(&memo) == 0); /* the first one at once */
	for (uint32_t i = 0; i < 20; i++) {
		memo.id = MEMO_ID;
		now = memo_wait(&memo);
		assert(now > last || now == STACK_MEMO_PATIENCE_MAX);
		last = now;
	}
	assert(last == STACK_MEMO_PATIENCE_MAX);
	/* Once one repeats, all begins again. */
	memo.id = MEMO_ID;
	stack_memo_used(&memo);
	assert(stack_memo_is_live(&memo));
	assert(memo_wait(&memo) == STACK_MEMO_PATIENCE);
}

/* A stack that comes every other time is kept. */
UNIT(a_stack_that_repeats_is_kept_through_others)
{
	struct stack_memo memo = {0};

	memo_note(&memo);
	stack_memo_used(&memo);
	for (uint32_t i = 0; i < 10 * STACK_MEMO_PATIENCE; i++) {
		for (uint32_t k = 1; k < STACK_MEMO_PATIENCE; k++)
			assert(!stack_memo_begin(&memo));
		assert(stack_memo_is_live(&memo) && memo_holds(&memo));
		stack_memo_used(&memo);
	}
}
