/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a buffer takes on another card, rule by rule. src/sim/replay-test.c compares whole runs with
 * the simulated allocator.
 */

#include "model/memory/replay.h"

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

static struct replay *make(const struct replay_card *card, enum free_list_fit fit)
{
	struct replay_rules rules = {.fit = fit};
	struct replay *replay;

	replay_rules_init(&rules, &recorded, card);
	replay = replay_new(&rules);
	assert(replay);
	return replay;
}

static struct replay_buffer pages(uint32_t type, uint64_t size, uint64_t page)
{
	return (struct replay_buffer){
		.type = type,
		.flags = OWNS_DATA,
		.size = size,
		.shape = {.page_size = page, .flags = BOOK_SHAPE_INTERLEAVED},
	};
}

static uint64_t taken(struct replay *replay, const struct replay_buffer *buffer)
{
	static const uint64_t sizes[] = {3072, 1792 - 16, 8192, 256 - 16, 1024};
	const struct replay_margin *margin = &replay_margins(replay)[buffer->type];
	struct replay_failure failure;

	assert(replay_take(replay, 0, buffer, 1, &failure) == 0);
	assert(margin->is_known && margin->moment == 1);
	(void)replay_free(replay);
	return sizes[buffer->type] - margin->free;
}

UNIT(pages_are_dealt_to_the_banks_of_the_other_card)
{
	struct replay_buffer buffer = pages(TYPES_DRAM, 1200, 100);
	struct replay_margin margin;
	struct replay_failure failure;
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);

	/* 12 pages of 128 bytes in 4 banks, then in 3, then in 8. */
	assert(replay_take(replay, 0, &buffer, 5, &failure) == 0);
	margin = replay_margins(replay)[TYPES_DRAM];
	assert(margin.size == 3072 && margin.free == 3072 - 384 && margin.largest == margin.free);
	assert(margin.banks == 4 && margin.moment == 5);
	(void)replay_free(replay);

	replay = make(&(struct replay_card){.dram_banks = 8}, FREE_LIST_FIRST);
	assert(replay_take(replay, 0, &buffer, 5, &failure) == 0);
	margin = replay_margins(replay)[TYPES_DRAM];
	/* TRACE is as large in all: 512 in each of 8 banks. */
	assert(margin.size == 3584 && margin.free == 3584 - 256 && margin.banks == 8);
	(void)replay_free(replay);
}

UNIT(shards_stay_as_they_are_and_need_as_many_banks)
{
	struct replay_buffer buffer = {
		.type = TYPES_L1,
		.flags = OWNS_DATA,
		.size = 600,
		.shape = {.size_per_bank = 100,
			  .banks = 6,
			  .page_size = 50,
			  .flags = BOOK_SHAPE_SHARDED},
	};
	struct replay *replay = make(&(struct replay_card){.l1_banks = 6}, FREE_LIST_FIRST);
	struct replay_failure failure = {0};

	assert(taken(replay, &buffer) == 112);
	replay = make(&(struct replay_card){.l1_banks = 5}, FREE_LIST_FIRST);
	assert(replay_take(replay, 0, &buffer, 1, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_SHARDS && failure.shards == 6 && failure.banks == 5);
	(void)replay_free(replay);
}

UNIT(without_pages_a_share_is_kept_or_guessed)
{
	struct replay_buffer buffer = {
		.type = TYPES_DRAM,
		.flags = OWNS_DATA,
		.size = 2000,
		.shape = {.size_per_bank = 600, .banks = 4},
	};
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_failure failure;

	assert(replay_take(replay, 0, &buffer, 1, &failure) == 0);
	assert(replay_margins(replay)[TYPES_DRAM].free == 3072 - 608);
	assert(replay_counts(replay)->guessed == 0);
	(void)replay_free(replay);

	replay = make(&(struct replay_card){.dram_banks = 5}, FREE_LIST_FIRST);
	assert(replay_take(replay, 0, &buffer, 1, &failure) == 0);
	assert(replay_counts(replay)->guessed == 1 && replay_counts(replay)->taken == 1);
	/* 2400 bytes in all, in 5 banks. */
	assert(replay_margins(replay)[TYPES_DRAM].size - replay_margins(replay)[TYPES_DRAM].free ==
	       480);
	(void)replay_free(replay);
}

UNIT(what_lies_elsewhere_takes_nothing)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer buffer = pages(TYPES_DRAM, 1 << 20, 32);
	struct replay_failure failure;

	buffer.flags = ALIAS;
	assert(replay_take(replay, 0, &buffer, 1, &failure) == 0);
	buffer.flags = PREALLOCATED;
	assert(replay_take(replay, 1, &buffer, 1, &failure) == 0);
	buffer.flags = OWNS_DATA;
	buffer.size = 0;
	assert(replay_take(replay, 2, &buffer, 1, &failure) == 0);
	assert(replay_counts(replay)->taken == 0 && !replay_margins(replay)[TYPES_DRAM].is_known);
	(void)replay_free(replay);
}

UNIT(a_failure_says_why)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer quarter = pages(TYPES_DRAM, 3072, 32);
	struct replay_buffer half = pages(TYPES_DRAM, 6144, 32);
	struct replay_buffer large = pages(TYPES_DRAM, 20000, 32);
	struct replay_failure failure = {0};

	assert(replay_take(replay, 9, &large, 1, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_LARGE && failure.size == 3072 && failure.banks == 4);
	for (uint32_t slot = 0; slot < 4; slot++)
		assert(replay_take(replay, slot, &quarter, slot + 2, &failure) == 0);
	assert(replay_take(replay, 9, &half, 6, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_FULL && failure.need == 1536 && failure.free == 0);
	assert(replay_give(replay, 0) == 0 && replay_give(replay, 2) == 0);
	assert(replay_take(replay, 9, &half, 7, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_CUT && failure.free == 1536 && failure.largest == 768);
	assert(!replay_has_room(replay, &half) && replay_has_room(replay, &quarter));
	/* The tightest moment is the first one at which all was taken. */
	assert(replay_margins(replay)[TYPES_DRAM].free == 0);
	assert(replay_margins(replay)[TYPES_DRAM].moment == 5);
	assert(replay_give(replay, 1) == 0);
	assert(replay_take(replay, 9, &half, 8, &failure) == 0);
	(void)replay_free(replay);
}

UNIT(a_slot_that_is_taken_again_gives_back_first)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer all = pages(TYPES_DRAM, 12288, 32);
	struct replay_failure failure;

	assert(replay_take(replay, 3, &all, 1, &failure) == 0);
	assert(replay_take(replay, 3, &all, 2, &failure) == 0);
	assert(replay_give(replay, 3) == 0 && replay_give(replay, 3) == 0);
	assert(replay_give(replay, 1000) == 0);
	assert(replay_take(replay, 4, &all, 3, &failure) == 0);
	(void)replay_free(replay);
}

UNIT(best_fit_can_run_what_first_fit_cannot)
{
	struct replay_buffer large = pages(TYPES_DRAM, 4096, 32); /* 1024 in each bank */
	struct replay_buffer small = pages(TYPES_DRAM, 2048, 32); /* 512 */
	struct replay_failure failure;

	for (int best = 0; best < 2; best++) {
		struct replay *replay =
			make(&(struct replay_card){0}, best ? FREE_LIST_BEST : FREE_LIST_FIRST);
		uint32_t slot = 0;

		assert(replay_take(replay, slot++, &large, 1, &failure) == 0);
		for (int i = 0; i < 4; i++)
			assert(replay_take(replay, slot++, &small, 1, &failure) == 0);
		/* Holes of 1024 at the bottom and of 512 further up. */
		assert(replay_give(replay, 0) == 0 && replay_give(replay, 2) == 0);
		assert(replay_take(replay, slot++, &small, 1, &failure) == 0);
		assert(replay_take(replay, slot, &large, 1, &failure) ==
		       (best ? 0 : REPLAY_FAILED));
		(void)replay_free(replay);
	}
}

UNIT(spaces_have_addresses_of_their_own)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer all = pages(TYPES_DRAM, 12288, 32);
	struct replay_failure failure;

	assert(replay_take(replay, 0, &all, 1, &failure) == 0);
	assert(replay_take(replay, 1, &all, 2, &failure) == REPLAY_FAILED);
	all.space = 7;
	assert(replay_take(replay, 1, &all, 2, &failure) == 0);
	assert(replay_counts(replay)->spaces == 2);
	(void)replay_free(replay);
}

UNIT(circular_buffers_must_end_below_the_buffers_of_l1)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer l1 = pages(TYPES_L1, 8 * 1024, 1024);
	struct replay_buffer circular = {
		.type = TYPES_CB,
		.address = 1008, /* 8 above the bottom */
		.size = 512,
		.shape = {.size_per_bank = 632},
	};
	struct replay_failure failure = {0};

	assert(replay_take(replay, 0, &l1, 1, &failure) == 0);
	/* 1776 are usable: 752 are left, of which they take 640. */
	assert(replay_take(replay, 1, &circular, 2, &failure) == 0);
	assert(replay_margins(replay)[REPLAY_CIRCULAR].free == 752 - 640);
	circular.shape.size_per_bank = 752;
	assert(replay_take(replay, 1, &circular, 3, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_CLASH && failure.need == 760 && failure.largest == 752);
	circular.shape.size_per_bank = 4000;
	assert(replay_take(replay, 1, &circular, 3, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_LARGE);
	(void)replay_free(replay);
}

UNIT(what_is_not_declared_is_not_judged)
{
	struct snapshot_facts nothing = {0};
	struct replay_buffer buffer = pages(TYPES_DRAM, 4096, 32);
	struct replay_rules rules = {0};
	struct replay_failure failure;
	struct replay *replay;

	replay_rules_init(&rules, &nothing, &(struct replay_card){0});
	replay = replay_new(&rules);
	assert(replay && replay_take(replay, 0, &buffer, 1, &failure) == 0);
	assert(replay_counts(replay)->unjudged == 1 && !replay_has_room(replay, &buffer));
	(void)replay_free(replay);

	/* A card that has a name is enough. */
	replay_rules_init(&rules, &nothing, &(struct replay_card){.facts = card_find("p150")});
	replay = replay_new(&rules);
	assert(replay && replay_take(replay, 0, &buffer, 1, &failure) == 0);
	assert(replay_counts(replay)->taken == 1);
	(void)replay_free(replay);
}

UNIT(declared_nonsense_is_not_believed)
{
	struct snapshot_facts facts = recorded;
	struct replay_rules rules;

	facts.windows[TYPES_DRAM].base = UINT64_MAX - 5;
	facts.windows[TYPES_L1].size = UINT64_MAX;
	facts.windows[TYPES_SYSTEM_MEMORY].alignment = 24;
	facts.windows[TYPES_TRACE].size = UINT64_MAX / 2;
	replay_rules_init(&rules, &facts, &(struct replay_card){0});
	assert(rules.to[TYPES_DRAM].size == 0 && rules.to[TYPES_L1].size == 0);
	assert(rules.to[TYPES_SYSTEM_MEMORY].alignment == 1);
	assert(rules.to[TYPES_TRACE].size == 0);

	/* A trace region that is larger than the other card's memory leaves no room for traces. */
	facts = recorded;
	facts.windows[TYPES_TRACE].size = UINT64_C(1) << 40;
	replay_rules_init(&rules, &facts, &(struct replay_card){.facts = card_find("n150")});
	assert(rules.to[TYPES_TRACE].size == 0 && rules.to[TYPES_DRAM].size > 0);
}

UNIT(huge_pages_do_not_overflow)
{
	struct replay *replay = make(&(struct replay_card){0}, FREE_LIST_FIRST);
	struct replay_buffer buffer = pages(TYPES_DRAM, UINT64_MAX, UINT64_MAX);
	struct replay_failure failure = {0};

	assert(replay_take(replay, 0, &buffer, 1, &failure) == REPLAY_FAILED);
	assert(failure.why == REPLAY_LARGE && failure.need == UINT64_MAX);
	buffer = pages(TYPES_DRAM, UINT64_MAX, 1);
	assert(replay_take(replay, 0, &buffer, 1, &failure) == REPLAY_FAILED);
	buffer.shape = (struct book_shape){.size_per_bank = UINT64_MAX, .banks = UINT32_MAX};
	assert(replay_take(replay, 0, &buffer, 1, &failure) == REPLAY_FAILED);
	(void)replay_free(replay);
}
