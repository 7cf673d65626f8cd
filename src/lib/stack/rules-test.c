/* SPDX-License-Identifier: Apache-2.0 */

/* The table of rules: a lookup finds what was stored or nothing, also while others store. */

#include "lib/stack/rules.h"

#include <pthread.h>

#include "base/bits.h"
#include "base/testing/unit.h"

#define RULES_BASE UINT64_C(0x7f0012340000)

/* A rule that identifies its address. */
static struct rule rules_of(uintptr_t address)
{
	int32_t low = (int32_t)(address & 0x7ffff) * 8;

	return (struct rule){.kind = RULE_SP, .cfa = low, .fp = -low};
}

static bool rules_is_of_it(uintptr_t address, const struct rule *rule)
{
	struct rule expected = rules_of(address);

	return rule->kind == expected.kind && rule->cfa == expected.cfa && rule->fp == expected.fp;
}

/* That of a function with a frame pointer. */
static struct rule rules_frame(void)
{
	struct rule rule = {.kind = RULE_FP, .cfa = 16, .fp = -16};

#if RULE_HAS_RA
	rule.ra = -8;
#endif
	return rule;
}

UNIT(a_rule_is_found_again)
{
	const struct rule rules[] = {
		{.kind = RULE_END},
		{.kind = RULE_LOST},
		{.kind = RULE_SP, .cfa = 8, .fp = RULE_KEPT},
		rules_frame(),
		{.kind = RULE_SAVED, .cfa = -8, .fp = 0},
		{.kind = RULE_SP, .cfa = RULE_OFFSET_MAX, .fp = -RULE_OFFSET_MAX},
		{.kind = RULE_SIGNAL},
	};
	struct rule found;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		uintptr_t address = RULES_BASE + i * 7919;

		assert(!rules_find(address, &found));
		rules_put(address, &rules[i]);
		assert(rules_find(address, &found));
		assert(found.kind == rules[i].kind && found.cfa == rules[i].cfa &&
		       found.fp == rules[i].fp && rules_ra(&found) == rules_ra(&rules[i]));
		assert(rules_are_frames(&found) == (i == 3));
	}
	rules_put(RULES_BASE, &rules[3]);
	assert(rules_find(RULES_BASE, &found) && rules_are_frames(&found));
	rules_forget();
	assert(!rules_find(RULES_BASE, &found));
}

#if RULE_HAS_RA
UNIT(a_return_address_may_be_anywhere_or_in_its_register)
{
	const int32_t offsets[] = {-8, -16, -4096, -RULE_OFFSET_MAX, RULE_KEPT};
	struct rule found;

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct rule rule = {
			.kind = RULE_SP, .cfa = 4096, .fp = RULE_KEPT, .ra = offsets[i]};

		rules_put(RULES_BASE, &rule);
		assert(rules_find(RULES_BASE, &found) && found.ra == offsets[i]);
		assert(found.cfa == 4096 && found.fp == RULE_KEPT);
	}
}
#endif

UNIT(an_address_that_cannot_be_is_not_kept)
{
	struct rule rule = {.kind = RULE_SP};
	struct rule found;

	rules_put(UINTPTR_MAX, &rule);
	rules_put(UINT64_C(1) << 56, &rule);
	assert(!rules_find(UINTPTR_MAX, &found) && !rules_find(UINT64_C(1) << 56, &found));
	assert(!rules_find(0, &found));
}

UNIT(a_full_table_forgets_but_does_not_mix_up)
{
	struct rule found;
	size_t known = 0;

	for (uintptr_t i = 1; i <= 100000; i++) {
		struct rule rule = rules_of(i * 5);

		rules_put(i * 5, &rule);
		assert(rules_find(i * 5, &found) && rules_is_of_it(i * 5, &found));
	}
	for (uintptr_t i = 1; i <= 500000; i++) {
		if (!rules_find(i, &found))
			continue;
		known++;
		assert(i % 5 == 0 && rules_is_of_it(i, &found));
	}
	assert(known > 1000 && known <= 8192);
}

#define RULES_ROUNDS 200u
#define RULES_ADDRESSES 20000u /* more than fit: they evict each other */

static uint32_t rules_is_done;

static void *rules_reader(void *context)
{
	struct rule found;
	size_t *ret_hits = context;

	while (!__atomic_load_n(&rules_is_done, __ATOMIC_ACQUIRE)) {
		for (uintptr_t i = 1; i <= RULES_ADDRESSES; i++) {
			if (!rules_find(i * 3, &found))
				continue;
			assert(rules_is_of_it(i * 3, &found));
			(*ret_hits)++;
		}
	}
	return NULL;
}

UNIT(readers_never_see_half_a_rule)
{
	pthread_t reader;
	size_t hits = 0;

	assert(pthread_create(&reader, NULL, rules_reader, &hits) == 0);
	for (uint32_t round = 0; round < RULES_ROUNDS; round++) {
		for (uintptr_t i = 1; i <= RULES_ADDRESSES; i++) {
			struct rule rule = rules_of(i * 3);

			rules_put(i * 3, &rule);
		}
		if (round % 16 == 15)
			rules_forget();
	}
	__atomic_store_n(&rules_is_done, 1, __ATOMIC_RELEASE);
	assert(pthread_join(reader, NULL) == 0);
}
