/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A memo holds only while a walk would find the same. On a stack made by hand every word is changed in
 * turn: whatever the memo overlooks, the walk itself shows.
 */

#include "lib/stack/walk-memo.h"

#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/stack/fp-or-rule.h"
#include "lib/stack/rules.h"

#define MEMO_WORDS 512u
#define MEMO_FRAMES 64u
#define MEMO_CODE UINT64_C(0x100012340000) /* where nothing is loaded */
#define MEMO_FILLER UINT64_C(0x200000000000)

static uintptr_t memo_stack[MEMO_WORDS] __attribute__((aligned(16)));

static const struct bounds memo_bounds = {
	.low = (uintptr_t)memo_stack,
	.high = (uintptr_t)(memo_stack + MEMO_WORDS),
	.mapped = (uintptr_t)memo_stack,
};

struct memo_walk {
	uintptr_t addresses[MEMO_FRAMES];
	size_t count;
	struct walk_memo memo;
};

static uintptr_t memo_at(size_t word)
{
	return (uintptr_t)(memo_stack + word);
}

/* All words are different, and none is an address of the stack. */
static void memo_fill(void)
{
	for (size_t i = 0; i < MEMO_WORDS; i++)
		memo_stack[i] = MEMO_FILLER + 64 * i;
}

/* A frame record at a word: where the next is, and a return address. */
static void memo_record(size_t word, uintptr_t fp, uintptr_t address)
{
	memo_stack[word] = fp;
	memo_stack[word + 1] = address;
}

static struct walk_start memo_start(void)
{
	return (struct walk_start){.frame = memo_stack, .sp = memo_at(2)};
}

static void memo_take(size_t max, struct memo_walk *ret_walk)
{
	memset(ret_walk, 0, sizeof(*ret_walk));
	ret_walk->count =
		walk_quick(&memo_bounds, memo_start(), ret_walk->addresses, max, &ret_walk->memo);
}

static bool memo_is_same(const struct memo_walk *a, const struct memo_walk *b)
{
	return a->count == b->count &&
	       memcmp(a->addresses, b->addresses, a->count * sizeof(a->addresses[0])) == 0;
}

/* Whether the memo sees that a word is another. */
static bool memo_sees(const struct memo_walk *walk, size_t max, size_t word, uintptr_t value)
{
	uintptr_t saved = memo_stack[word];
	struct memo_walk again;
	bool holds;

	memo_stack[word] = value;
	memo_take(max, &again);
	holds = walk_memo_holds(&walk->memo, memo_start());
	assert(!holds || memo_is_same(walk, &again));
	memo_stack[word] = saved;
	assert(walk_memo_holds(&walk->memo, memo_start()));
	return !holds;
}

/* Changes each word of the stack in several ways. Exactly @seen of them matter. */
static void memo_change_each(size_t max, size_t frames, size_t seen)
{
	struct memo_walk walk;
	size_t n = 0;

	memo_take(max, &walk);
	assert(walk.count == frames && walk_memo_end(&walk.memo));
	assert(walk_memo_holds(&walk.memo, memo_start()));
	for (size_t i = 0; i < MEMO_WORDS; i++) {
		const uintptr_t values[] = {0, memo_stack[i] ^ 16, memo_stack[i] + 64,
					    memo_stack[i] ^ UINT64_C(1) << 40, memo_at(i) + 16};
		size_t differ = 0, others = 0;

		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			if (values[k] == memo_stack[i])
				continue;
			others++;
			differ += memo_sees(&walk, max, i, values[k]);
		}
		assert(differ == 0 || differ == others);
		n += differ > 0;
	}
	assert(n == seen);
}

static void memo_rule(uintptr_t address, enum rule_kind kind, int32_t cfa, int32_t fp)
{
	struct rule rule = {.kind = kind, .cfa = cfa, .fp = fp};

#if RULE_HAS_RA
	rule.ra = -8;
#endif
	rules_put(address, &rule);
}

UNIT(each_word_that_rules_lead_to_matters)
{
	walk_open(WALK_RULES);
	memo_fill();
	/* Without a frame pointer; saves one that nobody needs. */
	memo_record(0, memo_at(40), MEMO_CODE);
	memo_rule(MEMO_CODE, RULE_SP, 80, -24);
	memo_stack[11] = MEMO_CODE + 64;
	/* The same, but its caller needs it. */
	memo_rule(MEMO_CODE + 64, RULE_SP, 80, -24);
	memo_stack[21] = MEMO_CODE + 128;
	memo_stack[19] = memo_at(40);
	memo_rule(MEMO_CODE + 128, RULE_FP, 16, -16);
	memo_record(40, memo_at(60), MEMO_CODE + 192);
	/* A realigned stack: where the caller's begins was saved below the frame pointer. */
	memo_rule(MEMO_CODE + 192, RULE_SAVED, -8, 0);
	memo_stack[59] = memo_at(80);
	memo_stack[60] = memo_at(100);
	memo_stack[79] = MEMO_CODE + 256;
	memo_rule(MEMO_CODE + 256, RULE_FP, 16, -16);
	memo_record(100, 0, MEMO_CODE + 320);
	memo_rule(MEMO_CODE + 320, RULE_END, 0, RULE_KEPT);
	/* Return addresses: 1, 11, 21, 41, 79, 101. Frame pointers: 19, 40, 60. The stack's: 59. */
	memo_change_each(MEMO_FRAMES, 6, 10);
	/* Nothing beyond the frames that are kept. */
	memo_change_each(3, 3, 3);
}

#if defined(__x86_64__) /* elsewhere auto goes by rules only */
UNIT(each_word_of_a_chain_of_frames_matters)
{
	walk_open(WALK_AUTO);
	memo_fill();
	for (size_t i = 0; i < 5; i++)
		memo_record(10 * i, i < 4 ? memo_at(10 * (i + 1)) : 0, MEMO_CODE + i);
	memo_change_each(MEMO_FRAMES, 5, 10);
	/* The last of those kept need not lead anywhere. */
	memo_change_each(3, 3, 5);
}

UNIT(each_word_on_the_way_through_a_file_without_frame_pointers_matters)
{
	walk_open(WALK_AUTO);
	memo_fill();
	memo_record(0, memo_at(10), MEMO_CODE);
	memo_record(10, memo_at(40), MEMO_CODE + 0x100000);
	fp_or_rule_pin(MEMO_CODE + 0xff000, MEMO_CODE + 0x101000);
	memo_rule(MEMO_CODE + 0x100000, RULE_SP, 80, RULE_KEPT);
	memo_stack[21] = MEMO_CODE + 64;
	memo_record(40, 0, MEMO_CODE + 128);
	/* Return addresses: 1, 11, 21, 41. Frame pointers: 0, 10, 40, which ends the chain. */
	memo_change_each(MEMO_FRAMES, 4, 7);
}
#endif

UNIT(another_place_is_another_walk)
{
	struct walk_start start = memo_start();
	struct memo_walk walk;

	walk_open(WALK_FRAMES);
	memo_fill();
	memo_record(0, memo_at(10), MEMO_CODE);
	memo_record(10, 0, MEMO_CODE + 1);
	memo_take(MEMO_FRAMES, &walk);
	assert(walk.count == 2 && walk_memo_holds(&walk.memo, start));
	start.sp += 16;
	assert(!walk_memo_holds(&walk.memo, start));
	/* The same words elsewhere: from there the chain leads back, which ends it. */
	memmove(memo_stack + 100, memo_stack, 20 * sizeof(memo_stack[0]));
	start = (struct walk_start){.frame = memo_stack + 100, .sp = memo_at(2)};
	assert(!walk_memo_holds(&walk.memo, start));
}

UNIT(other_rules_are_another_walk)
{
	struct memo_walk walk;

	walk_open(WALK_RULES);
	memo_fill();
	memo_record(0, 0, MEMO_CODE);
	memo_rule(MEMO_CODE, RULE_END, 0, RULE_KEPT);
	memo_take(MEMO_FRAMES, &walk);
	assert(walk.count == 1 && walk_memo_holds(&walk.memo, memo_start()));
	fp_or_rule_forget();
	assert(!walk_memo_holds(&walk.memo, memo_start()));
}

UNIT(a_walk_with_too_many_words_is_not_noted)
{
	struct memo_walk walk;

	walk_open(WALK_FRAMES);
	memo_fill();
	for (size_t i = 0; i < MEMO_FRAMES; i++)
		memo_record(4 * i, memo_at(4 * (i + 1)), MEMO_CODE + i);
	memo_take(WALK_MEMO_WORDS / 2, &walk);
	assert(walk.count == WALK_MEMO_WORDS / 2 && walk_memo_end(&walk.memo));
	memo_take(WALK_MEMO_WORDS / 2 + 1, &walk);
	assert(walk.count == WALK_MEMO_WORDS / 2 + 1 && !walk_memo_end(&walk.memo));
}

UNIT(a_walk_through_a_signal_is_not_noted)
{
	struct memo_walk walk;

	walk_open(WALK_RULES);
	memo_fill();
	memo_record(0, 0, MEMO_CODE);
	memo_rule(MEMO_CODE, RULE_SP, 80, RULE_KEPT);
	memo_stack[11] = MEMO_CODE + 64;
	memo_rule(MEMO_CODE + 64, RULE_SIGNAL, 0, RULE_KEPT);
	memo_take(MEMO_FRAMES, &walk);
	assert(walk.count == 1 && !walk_memo_end(&walk.memo));
}
