/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a buffer takes on another card, rule by rule. src/sim/refit-test.c compares whole runs with
 * the simulated allocator.
 */

#include "model/memory/refit.h"

#include <errno.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/cards/card.h"
#include "model/types.h"

#define OWNS_DATA 0x01u
#define PREALLOCATED 0x02u
#define ALIAS 0x04u

/* A small device: 4 banks of DRAM with TRACE at the top, 8 of L1 with L1_SMALL at the top. */
static const struct snapshot_facts recorded = {
	.windows =
		{
			[TYPES_DRAM] = {.base = 64, .size = 4096, .banks = 4, .alignment = 32},
			[TYPES_L1] = {.base = 1000, .size = 2048, .banks = 8, .alignment = 16},
			[TYPES_SYSTEM_MEMORY] =
				{.base = 0, .size = 8192, .banks = 1, .alignment = 64},
			[TYPES_L1_SMALL] = {.base = 2792, .size = 256, .banks = 8, .alignment = 16},
			[TYPES_TRACE] = {.base = 3136, .size = 1024, .banks = 4, .alignment = 32},
		},
};

static struct refit *make(const struct refit_card *card, enum free_list_fit fit)
{
	struct refit_rules rules = {.fit = fit};
	struct refit *refit;

	refit_rules_init(&rules, &recorded, card);
	refit = refit_new(&rules);
	assert(refit);
	return refit;
}

static struct refit_buffer pages(uint32_t type, uint64_t size, uint64_t page)
{
	return (struct refit_buffer){
		.type = type,
		.flags = OWNS_DATA,
		.size = size,
		.shape = {.page_size = page, .flags = BOOK_SHAPE_INTERLEAVED},
	};
}

UNIT(pages_are_dealt_to_the_banks_of_the_other_card)
{
	struct refit_buffer buffer = pages(TYPES_DRAM, 1200, 100);
	struct refit_margin margin;
	struct refit_failure failure;
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);

	/* 12 pages of 128 bytes in 4 banks, then in 3, then in 8. */
	assert(refit_take(refit, 0, &buffer, 5, &failure) == 0);
	margin = refit_margins(refit)[TYPES_DRAM];
	assert(margin.size == 3072 && margin.free == 3072 - 384 && margin.largest == margin.free);
	assert(margin.banks == 4 && margin.moment == 5);
	(void)refit_free(refit);

	refit = make(&(struct refit_card){.dram_banks = 8}, FREE_LIST_FIRST);
	assert(refit_take(refit, 0, &buffer, 5, &failure) == 0);
	margin = refit_margins(refit)[TYPES_DRAM];
	/* TRACE is as large in all: 512 in each of 8 banks. */
	assert(margin.size == 3584 && margin.free == 3584 - 256 && margin.banks == 8);
	(void)refit_free(refit);
}

UNIT(shards_stay_as_they_are_and_need_as_many_banks)
{
	struct refit_buffer buffer = {
		.type = TYPES_L1,
		.flags = OWNS_DATA,
		.size = 600,
		.shape = {.size_per_bank = 100,
			  .banks = 6,
			  .page_size = 50,
			  .flags = BOOK_SHAPE_SHARDED},
	};
	struct refit *refit = make(&(struct refit_card){.l1_banks = 6}, FREE_LIST_FIRST);
	struct refit_failure failure = {0};

	assert(refit_take(refit, 0, &buffer, 1, &failure) == 0);
	/* Of 1792 bytes, 16 are lost to alignment. */
	assert(refit_margins(refit)[TYPES_L1].free == 1776 - 112);
	(void)refit_free(refit);
	refit = make(&(struct refit_card){.l1_banks = 5}, FREE_LIST_FIRST);
	assert(refit_take(refit, 0, &buffer, 1, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_SHARDS && failure.shards == 6 && failure.banks == 5);
	(void)refit_free(refit);
}

UNIT(without_pages_a_share_is_kept_or_guessed)
{
	struct refit_buffer buffer = {
		.type = TYPES_DRAM,
		.flags = OWNS_DATA,
		.size = 2000,
		.shape = {.size_per_bank = 600, .banks = 4},
	};
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_failure failure;

	assert(refit_take(refit, 0, &buffer, 1, &failure) == 0);
	assert(refit_margins(refit)[TYPES_DRAM].free == 3072 - 608);
	assert(refit_counts(refit)->guessed == 0);
	(void)refit_free(refit);

	refit = make(&(struct refit_card){.dram_banks = 5}, FREE_LIST_FIRST);
	assert(refit_take(refit, 0, &buffer, 1, &failure) == 0);
	assert(refit_counts(refit)->guessed == 1 && refit_counts(refit)->taken == 1);
	/* 2400 bytes in all, in 5 banks. */
	assert(refit_margins(refit)[TYPES_DRAM].size - refit_margins(refit)[TYPES_DRAM].free ==
	       480);
	(void)refit_free(refit);
}

UNIT(what_lies_elsewhere_takes_nothing)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer buffer = pages(TYPES_DRAM, 1 << 20, 32);
	struct refit_failure failure;

	buffer.flags = ALIAS;
	assert(refit_take(refit, 0, &buffer, 1, &failure) == 0);
	buffer.flags = PREALLOCATED;
	assert(refit_take(refit, 1, &buffer, 1, &failure) == 0);
	buffer.flags = OWNS_DATA;
	buffer.size = 0;
	assert(refit_take(refit, 2, &buffer, 1, &failure) == 0);
	assert(refit_counts(refit)->taken == 0 && !refit_margins(refit)[TYPES_DRAM].is_known);
	(void)refit_free(refit);
}

UNIT(a_failure_says_why)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer quarter = pages(TYPES_DRAM, 3072, 32);
	struct refit_buffer half = pages(TYPES_DRAM, 6144, 32);
	struct refit_buffer large = pages(TYPES_DRAM, 20000, 32);
	struct refit_failure failure = {0};

	assert(refit_take(refit, 9, &large, 1, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_LARGE && failure.size == 3072 && failure.banks == 4);
	for (uint32_t slot = 0; slot < 4; slot++)
		assert(refit_take(refit, slot, &quarter, slot + 2, &failure) == 0);
	assert(refit_take(refit, 9, &half, 6, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_FULL && failure.need == 1536 && failure.free == 0);
	assert(refit_give(refit, 0) == 0 && refit_give(refit, 2) == 0);
	assert(refit_take(refit, 9, &half, 7, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_CUT && failure.free == 1536 && failure.largest == 768);
	assert(refit_has_room(refit, &half) == 0 && refit_has_room(refit, &quarter) == 1);
	/* The tightest moment is the first one at which all was taken. */
	assert(refit_margins(refit)[TYPES_DRAM].free == 0);
	assert(refit_margins(refit)[TYPES_DRAM].moment == 5);
	assert(refit_give(refit, 1) == 0);
	assert(refit_take(refit, 9, &half, 8, &failure) == 0);
	(void)refit_free(refit);
}

UNIT(a_slot_that_is_taken_again_gives_back_first)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer all = pages(TYPES_DRAM, 12288, 32);
	struct refit_failure failure;

	assert(refit_take(refit, 3, &all, 1, &failure) == 0);
	assert(refit_take(refit, 3, &all, 2, &failure) == 0);
	assert(refit_give(refit, 3) == 0 && refit_give(refit, 3) == 0);
	assert(refit_give(refit, 1000) == 0);
	assert(refit_take(refit, 4, &all, 3, &failure) == 0);
	(void)refit_free(refit);
}

UNIT(best_fit_can_run_what_first_fit_cannot)
{
	struct refit_buffer large = pages(TYPES_DRAM, 4096, 32); /* 1024 in each bank */
	struct refit_buffer small = pages(TYPES_DRAM, 2048, 32); /* 512 */
	struct refit_failure failure;

	for (int best = 0; best < 2; best++) {
		struct refit *refit =
			make(&(struct refit_card){0}, best ? FREE_LIST_BEST : FREE_LIST_FIRST);
		uint32_t slot = 0;

		assert(refit_take(refit, slot++, &large, 1, &failure) == 0);
		for (int i = 0; i < 4; i++)
			assert(refit_take(refit, slot++, &small, 1, &failure) == 0);
		/* Holes of 1024 at the bottom and of 512 further up. */
		assert(refit_give(refit, 0) == 0 && refit_give(refit, 2) == 0);
		assert(refit_take(refit, slot++, &small, 1, &failure) == 0);
		assert(refit_take(refit, slot, &large, 1, &failure) == (best ? 0 : REFIT_FAILED));
		(void)refit_free(refit);
	}
}

UNIT(spaces_have_addresses_of_their_own)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer all = pages(TYPES_DRAM, 12288, 32);
	struct refit_failure failure;

	assert(refit_take(refit, 0, &all, 1, &failure) == 0);
	assert(refit_take(refit, 1, &all, 2, &failure) == REFIT_FAILED);
	all.space = 7;
	assert(refit_take(refit, 1, &all, 2, &failure) == 0);
	assert(refit_counts(refit)->spaces == 2);
	(void)refit_free(refit);
}

UNIT(circular_buffers_must_end_below_the_buffers_of_l1)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer l1 = pages(TYPES_L1, 8 * 1024, 1024);
	struct refit_buffer circular = {
		.type = TYPES_CB,
		.address = 1008, /* 8 above the bottom */
		.size = 512,
		.shape = {.size_per_bank = 632},
	};
	struct refit_failure failure = {0};

	assert(refit_take(refit, 0, &l1, 1, &failure) == 0);
	/* 1776 are usable: 752 are left, of which they take 640. */
	assert(refit_take(refit, 1, &circular, 2, &failure) == 0);
	assert(refit_margins(refit)[REFIT_CIRCULAR].free == 752 - 640);
	circular.shape.size_per_bank = 752;
	assert(refit_take(refit, 1, &circular, 3, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_CLASH && failure.need == 760 && failure.largest == 752);
	circular.shape.size_per_bank = 4000;
	assert(refit_take(refit, 1, &circular, 3, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_LARGE);
	(void)refit_free(refit);
}

UNIT(what_is_not_declared_is_not_judged)
{
	struct snapshot_facts nothing = {0};
	struct refit_buffer buffer = pages(TYPES_DRAM, 4096, 32);
	struct refit_rules rules = {0};
	struct refit_failure failure;
	struct refit *refit;

	refit_rules_init(&rules, &nothing, &(struct refit_card){0});
	refit = refit_new(&rules);
	assert(refit && refit_take(refit, 0, &buffer, 1, &failure) == 0);
	assert(refit_counts(refit)->unjudged == 1 && refit_has_room(refit, &buffer) == -ENODATA);
	(void)refit_free(refit);

	/* A card that has a name is enough. */
	refit_rules_init(&rules, &nothing, &(struct refit_card){.facts = card_find("p150")});
	refit = refit_new(&rules);
	assert(refit && refit_take(refit, 0, &buffer, 1, &failure) == 0);
	assert(refit_counts(refit)->taken == 1);
	(void)refit_free(refit);
}

UNIT(a_named_card_has_the_banks_of_fast_dispatch_and_says_that_it_assumes_them)
{
	static const struct {
		const char *card;
		uint32_t banks;
	} cards[] = {{"n150", 64},
		     {"n300", 56},
		     {"galaxy", 72},
		     {"galaxy-wormhole", 72},
		     {"galaxy-blackhole", 120},
		     {"p100", 110},
		     {"p100a", 110},
		     {"p150a", 110}};

	for (size_t i = 0; i < ARRAY_SIZE(cards); i++) {
		struct refit_card card = {.facts = card_find(cards[i].card)};
		struct refit_rules rules;

		refit_rules_init(&rules, &recorded, &card);
		assert(rules.to[TYPES_L1].banks == cards[i].banks && rules.assumes_l1);
		card.l1_banks = card.facts->cores; /* slow dispatch, by the user's word */
		refit_rules_init(&rules, &recorded, &card);
		assert(rules.to[TYPES_L1].banks == card.facts->cores && !rules.assumes_l1);
	}
}

UNIT(declared_nonsense_is_not_believed)
{
	struct snapshot_facts facts = recorded;
	struct refit_rules rules;

	facts.windows[TYPES_DRAM].base = UINT64_MAX - 5;
	facts.windows[TYPES_L1].size = UINT64_MAX;
	facts.windows[TYPES_SYSTEM_MEMORY].alignment = 24;
	facts.windows[TYPES_TRACE].size = UINT64_MAX / 2;
	refit_rules_init(&rules, &facts, &(struct refit_card){0});
	assert(rules.to[TYPES_DRAM].size == 0 && rules.to[TYPES_L1].size == 0);
	assert(rules.to[TYPES_SYSTEM_MEMORY].alignment == 1);
	assert(rules.to[TYPES_TRACE].size == 0);

	/* A trace region that is larger than the other card's memory leaves no room for traces. */
	facts = recorded;
	facts.windows[TYPES_TRACE].size = UINT64_C(1) << 40;
	refit_rules_init(&rules, &facts, &(struct refit_card){.facts = card_find("n150")});
	assert(rules.to[TYPES_TRACE].size == 0 && rules.to[TYPES_DRAM].size > 0);
}

UNIT(huge_pages_do_not_overflow)
{
	struct refit *refit = make(&(struct refit_card){0}, FREE_LIST_FIRST);
	struct refit_buffer buffer = pages(TYPES_DRAM, UINT64_MAX, UINT64_MAX);
	struct refit_failure failure = {0};

	assert(refit_take(refit, 0, &buffer, 1, &failure) == REFIT_FAILED);
	assert(failure.why == REFIT_LARGE && failure.need == UINT64_MAX);
	buffer = pages(TYPES_DRAM, UINT64_MAX, 1);
	assert(refit_take(refit, 0, &buffer, 1, &failure) == REFIT_FAILED);
	buffer.shape = (struct book_shape){.size_per_bank = UINT64_MAX, .banks = UINT32_MAX};
	assert(refit_take(refit, 0, &buffer, 1, &failure) == REFIT_FAILED);
	(void)refit_free(refit);
}
