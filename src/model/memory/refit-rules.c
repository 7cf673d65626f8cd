/* SPDX-License-Identifier: Apache-2.0 */

/* Where the memories of a card lie, for a program that was recorded on another one. */

#include "base/bits.h"
#include "model/cards/card.h"
#include "model/memory/refit.h"
#include "model/types.h"

#define REFIT_BYTES_MAX (UINT64_C(1) << 62) /* of a bank: keeps all sums in range */

/* A process has declared it: any number is possible. */
static struct snapshot_window refit_checked(struct snapshot_window window)
{
	if (!window.size || !window.banks || window.base > REFIT_BYTES_MAX ||
	    window.size > REFIT_BYTES_MAX)
		return (struct snapshot_window){0};
	if (!window.alignment || window.alignment & (window.alignment - 1) ||
	    window.alignment > window.size)
		window.alignment = 1;
	return window;
}

/* @banks: 0 = as the card has them, if that is known. */
static struct snapshot_window refit_of_card(const struct card_facts *facts, uint32_t type,
					    uint32_t banks)
{
	uint32_t fast = card_l1_banks(facts);
	uint32_t all = type == TYPES_DRAM ? facts->dram_banks : fast ? fast : facts->cores;
	uint64_t size = type == TYPES_DRAM ? facts->dram_bank_size : facts->l1_per_core;
	uint64_t base = type == TYPES_DRAM ? facts->dram_base : facts->l1_base;

	return refit_checked((struct snapshot_window){
		.base = base,
		.size = size > base ? size - base : 0,
		.banks = banks ? banks : all,
		.alignment = type == TYPES_DRAM ? facts->dram_alignment : facts->l1_alignment,
	});
}

/* What is cut off the top of @whole: as many bytes in all, or in each bank. */
static struct snapshot_window refit_top(const struct snapshot_window *whole,
					const struct snapshot_window *recorded, bool is_per_bank)
{
	struct snapshot_window top = *whole;

	top.size = recorded->size;
	if (!is_per_bank && whole->banks && recorded->banks != whole->banks) {
		uint64_t all;

		if (__builtin_mul_overflow(recorded->size, (uint64_t)recorded->banks, &all))
			return (struct snapshot_window){0};
		top.size = bits_align_up(all / whole->banks + (all % whole->banks != 0),
					 whole->alignment);
	}
	if (!top.size || top.size > whole->size)
		return (struct snapshot_window){0};
	top.base = whole->base + whole->size - top.size;
	return top;
}

/* A memory and the one that is cut off its top. */
static void refit_cut(struct refit_rules *rules, uint32_t type, uint32_t top, bool is_cards)
{
	struct snapshot_window *whole = &rules->to[type];
	const struct snapshot_window *recorded = &rules->from[top];
	uint64_t end = rules->from[type].base + rules->from[type].size;

	if (!whole->size || !recorded->size) {
		rules->to[top] = (struct snapshot_window){0};
		return;
	}
	/* A program may declare them side by side. */
	if (!is_cards && (recorded->base <= rules->from[type].base || recorded->base >= end)) {
		rules->to[top] = *recorded;
		return;
	}
	rules->to[top] = refit_top(whole, recorded, top == TYPES_L1_SMALL);
	whole->size -= rules->to[top].size;
}

void refit_rules_init(struct refit_rules *rules, const struct snapshot_facts *recorded,
		      const struct refit_card *card)
{
	for (uint32_t type = 0; type < REFIT_MEMORIES; type++)
		rules->to[type] = rules->from[type] = refit_checked(recorded->windows[type]);
	rules->assumes_l1 = card->facts && !card->l1_banks;
	if (card->facts) {
		rules->to[TYPES_DRAM] = refit_of_card(card->facts, TYPES_DRAM, card->dram_banks);
		rules->to[TYPES_L1] = refit_of_card(card->facts, TYPES_L1, card->l1_banks);
	} else {
		if (card->dram_banks)
			rules->to[TYPES_DRAM].banks = card->dram_banks;
		if (card->l1_banks)
			rules->to[TYPES_L1].banks = card->l1_banks;
	}
	refit_cut(rules, TYPES_DRAM, TYPES_TRACE, card->facts);
	refit_cut(rules, TYPES_L1, TYPES_L1_SMALL, card->facts);
}
