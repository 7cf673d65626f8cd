/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A memo holds only while a walk would find the same. On a stack made by hand every word is changed in
 * turn: whatever the memo overlooks, the walk itself shows.
 */

#include "lib/stack/walk-memo.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/stack/fp-or-rule.h"
#include "lib/stack/rules.h"

#define MEMO_WORDS 512u
#define MEMO_FRAMES 64u
#define MEMO_CODE UINT64_C(0x100012340000) /* where nothing is loaded */
#define MEMO_RANDOM_RULES 24u
#define MEMO_ROUNDS 4000u
#define MEMO_NEAR 48u /* words from the beginning, where most walks are */
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
	bool is_whole;
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
	ret_walk->is_whole = walk_memo_end(&ret_walk->memo);
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
	assert(walk.count == frames && walk.is_whole);
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

static void memo_change_chain(enum walk_how how)
{
	walk_open(how);
	memo_fill();
	for (size_t i = 0; i < 5; i++)
		memo_record(10 * i, i < 4 ? memo_at(10 * (i + 1)) : 0, MEMO_CODE + i);
	memo_change_each(MEMO_FRAMES, 5, 10);
	/* The last of those kept need not lead anywhere. */
	memo_change_each(3, 3, 5);
}

UNIT(each_word_of_a_chain_of_frames_matters)
{
	memo_change_chain(WALK_FRAMES);
}

#if defined(__x86_64__) /* elsewhere auto goes by rules only */
UNIT(each_word_of_a_chain_of_frames_matters_auto)
{
	memo_change_chain(WALK_AUTO);
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

	walk_open(WALK_RULES);
	memo_fill();
	memo_record(0, memo_at(10), MEMO_CODE);
	memo_rule(MEMO_CODE, RULE_FP, 16, -16);
	memo_record(10, 0, MEMO_CODE + 64);
	memo_rule(MEMO_CODE + 64, RULE_END, 0, RULE_KEPT);
	memo_take(MEMO_FRAMES, &walk);
	assert(walk.count == 2 && walk_memo_holds(&walk.memo, start));
	start.sp += 16;
	assert(!walk_memo_holds(&walk.memo, start));
	/* The same words elsewhere: from there the frame pointer leads back, which ends the walk. */
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

	walk_open(WALK_RULES);
	memo_fill();
	for (size_t i = 0; i < MEMO_FRAMES; i++) {
		memo_stack[4 * i + 1] = MEMO_CODE + 64 * i;
		memo_rule(MEMO_CODE + 64 * i, RULE_SP, 32, RULE_KEPT);
	}
	memo_take(WALK_MEMO_WORDS, &walk);
	assert(walk.count == WALK_MEMO_WORDS && walk.is_whole);
	memo_take(WALK_MEMO_WORDS + 1, &walk);
	assert(walk.count == WALK_MEMO_WORDS + 1 && !walk.is_whole);
}

/* Offsets have 32 bits, a stack may be larger. */
UNIT(a_word_that_is_too_far_away_is_not_noted)
{
	struct walk_memo memo;

	walk_memo_begin(&memo, memo_start());
	walk_memo_note(&memo, memo_at(1), 1);
	walk_memo_note(&memo, memo_at(0) + UINT32_MAX - 7, 1);
	assert(walk_memo_end(&memo));
	walk_memo_begin(&memo, memo_start());
	walk_memo_note(&memo, memo_at(1), 1);
	walk_memo_note(&memo, memo_at(0) + UINT32_MAX + 1, 1);
	assert(!walk_memo_end(&memo));
	/* Nor is what comes after it. */
	walk_memo_note(&memo, memo_at(1), 1);
	assert(!walk_memo_end(&memo));
}

/* After the first word that differs the walk may go elsewhere: the others may be gone. */
UNIT(nothing_is_read_that_the_walk_would_not_read)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t *words =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t half = page / sizeof(uintptr_t);
	const struct walk_start start = {.frame = words, .sp = (uintptr_t)(words + 2)};
	const struct bounds bounds = {.low = (uintptr_t)words, .high = (uintptr_t)words + 2 * page};
	struct memo_walk walk;

	assert(words != MAP_FAILED);
	walk_open(WALK_RULES);
	words[0] = (uintptr_t)(words + half);
	words[1] = MEMO_CODE;
	memo_rule(MEMO_CODE, RULE_FP, 16, -16);
	words[half] = (uintptr_t)(words + half + 2);
	words[half + 1] = MEMO_CODE + 64;
	memo_rule(MEMO_CODE + 64, RULE_END, 0, RULE_KEPT);
	assert(walk_quick(&bounds, start, walk.addresses, MEMO_FRAMES, &walk.memo) == 2);
	assert(walk_memo_end(&walk.memo) && walk_memo_holds(&walk.memo, start));
	words[0] = 0;
	assert(mprotect(words + half, page, PROT_NONE) == 0);
	assert(walk_quick(&bounds, start, walk.addresses, MEMO_FRAMES, NULL) == 1);
	assert(!walk_memo_holds(&walk.memo, start));
	assert(munmap(words, 2 * page) == 0);
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
	assert(walk.count == 1 && !walk.is_whole);
}

/* A word as damaged or reused stacks have it: an address of the stack, of code, or nothing. */
static uintptr_t memo_word(struct testing_rng *rng)
{
	switch (testing_below(rng, 4)) {
	case 0:
		return memo_at(testing_below(rng, MEMO_WORDS));
	case 1:
		return MEMO_CODE + 64 * (uintptr_t)testing_below(rng, MEMO_RANDOM_RULES + 2);
	case 2:
		return MEMO_CODE + 64 * (uintptr_t)testing_below(rng, 4);
	default:
		return testing_below(rng, 2);
	}
}

static void memo_random_rules(struct testing_rng *rng)
{
	static const enum rule_kind kinds[] = {RULE_SP,    RULE_SP,  RULE_FP,   RULE_FP,
					       RULE_SAVED, RULE_END, RULE_LOST, RULE_SIGNAL};

	for (size_t i = 0; i < MEMO_RANDOM_RULES; i++) {
		enum rule_kind kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))];
		int32_t cfa = 8 * (int32_t)(1 + testing_below(rng, 8));
		int32_t fp = -8 * (int32_t)(1 + testing_below(rng, 6));

		memo_rule(MEMO_CODE + 64 * i, kind, kind == RULE_SAVED ? -8 : cfa,
			  testing_below(rng, 2) ? fp : RULE_KEPT);
	}
}

/* Some words at once are others. Whenever the memo holds, the walk is the same. */
static void memo_random_changes(struct testing_rng *rng, const struct memo_walk *walk, size_t max,
				uint32_t *holds, uint32_t *misses)
{
	uintptr_t saved[MEMO_WORDS];
	struct memo_walk again;

	memcpy(saved, memo_stack, sizeof(saved));
	for (uint32_t n = testing_below(rng, 4); n < 4; n++)
		memo_stack[testing_below(rng, MEMO_NEAR)] = memo_word(rng);
	memo_take(max, &again);
	if (walk_memo_holds(&walk->memo, memo_start())) {
		assert(memo_is_same(walk, &again));
		(*holds)++;
	} else {
		(*misses)++;
	}
	memcpy(memo_stack, saved, sizeof(saved));
}

static void memo_random(enum walk_how how)
{
	struct testing_rng rng = testing_rng_new();
	uint32_t holds = 0, misses = 0;
	struct memo_walk walk;

	walk_open(how);
	memo_random_rules(&rng);
	for (uint32_t i = 0; i < MEMO_ROUNDS; i++) {
		size_t max = 1 + testing_below(&rng, 24);

		if (i % 64 == 0)
			memo_random_rules(&rng);
		for (size_t k = 0; k < MEMO_WORDS; k++)
			memo_stack[k] = memo_word(&rng);
		memo_stack[1] = MEMO_CODE + 64 * (uintptr_t)testing_below(&rng, MEMO_RANDOM_RULES);
		memo_take(max, &walk);
		if (walk.count == 0 || !walk.is_whole)
			continue;
		assert(walk_memo_holds(&walk.memo, memo_start()));
		for (uint32_t k = 0; k < 8; k++)
			memo_random_changes(&rng, &walk, max, &holds, &misses);
	}
	assert(holds > MEMO_ROUNDS / 8 && misses > MEMO_ROUNDS / 8);
}

UNIT(random_changes_are_seen_if_they_matter_fp)
{
	memo_random(WALK_FRAMES);
}

UNIT(random_changes_are_seen_if_they_matter)
{
	memo_random(WALK_RULES);
}

UNIT(random_changes_are_seen_if_they_matter_auto)
{
	memo_random(WALK_AUTO);
}
