/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of cards. Names are those of the driver's tt_card_type. Cores are those available to
 * users; banks and their sizes are what tt-metal hands out: the upper 16 MiB of a Blackhole bank
 * cannot be addressed. A card whose number of cores is uncertain has none here; its L1 is then
 * shown without a total rather than with a wrong one.
 */

#include "model/cards/card.h"

#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "model/types.h"

#define KIB 1024u
#define GIB (UINT64_C(1) << 30)

#define GRAYSKULL_L1 (1024 * KIB)
#define WORMHOLE_L1 (1464 * KIB)
#define BLACKHOLE_L1 (1536 * KIB)
#define BLACKHOLE_BANK (4 * GIB - 16 * KIB * KIB)

/* Bases and alignments; src/sim/sim-card.c says where they come from. */
#define WORMHOLE_BASES 32, 32, 103712, 16
#define BLACKHOLE_BASES 64, 64, 103040, 16

#define CARD_VENDOR 0x1e52u

static const struct card_facts card_table[] = {
	{"e75", "grayskull", 96, GRAYSKULL_L1, 8, GIB, 0, 0, 0, 0},
	{"e150", "grayskull", 120, GRAYSKULL_L1, 8, GIB, 0, 0, 0, 0},
	{"n150", "wormhole_b0", 72, WORMHOLE_L1, 12, GIB, WORMHOLE_BASES},
	{"n300", "wormhole_b0", 64, WORMHOLE_L1, 12, GIB, WORMHOLE_BASES},
	{"galaxy", "wormhole_b0", 72, WORMHOLE_L1, 12, GIB,
	 WORMHOLE_BASES}, /* as processes call it */
	{"galaxy-wormhole", "wormhole_b0", 72, WORMHOLE_L1, 12, GIB, WORMHOLE_BASES},
	{"p100", "blackhole", 120, BLACKHOLE_L1, 7, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p100a", "blackhole", 120, BLACKHOLE_L1, 7, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p150", "blackhole", 140, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES}, /* likewise */
	{"p150a", "blackhole", 140, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p150b", "blackhole", 140, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p150c", "blackhole", 140, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p300a", "blackhole", 0, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p300b", "blackhole", 0, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"p300c", "blackhole", 0, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
	{"galaxy-blackhole", "blackhole", 130, BLACKHOLE_L1, 8, BLACKHOLE_BANK, BLACKHOLE_BASES},
};

const struct card_facts *card_at(size_t index)
{
	return index < ARRAY_SIZE(card_table) ? &card_table[index] : NULL;
}

const struct card_facts *card_find(const char *card)
{
	for (size_t i = 0; card && i < ARRAY_SIZE(card_table); i++) {
		if (strcmp(card_table[i].card, card) == 0)
			return &card_table[i];
	}
	return NULL;
}

uint32_t card_l1_banks(const struct card_facts *facts)
{
	/*
	 * The first three were measured with the real tt-metal in mock mode, one chip each. Those of galaxies follow
	 * from its core descriptors: a Wormhole dispatches from one of ten rows, a Blackhole from a column of ten, and
	 * every chip of a Blackhole galaxy has 13 columns. A p100 is assumed to have 12.
	 */
	static const struct {
		const char *card; /* and its variants */
		uint32_t banks;
	} table[] = {{"n150", 64},   {"n300", 56}, {"p150", 110}, {"galaxy-blackhole", 120},
		     {"galaxy", 72}, {"p100", 110}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (strncmp(facts->card, table[i].card, strlen(table[i].card)) == 0)
			return table[i].banks;
	}
	return 0;
}

uint64_t card_capacity(const struct card_facts *facts, uint32_t type)
{
	if (facts && type == TYPES_DRAM)
		return facts->dram_banks * facts->dram_bank_size;
	if (facts && type == TYPES_L1)
		return (uint64_t)facts->cores * facts->l1_per_core;
	return 0;
}

const char *card_arch(uint32_t vendor, uint32_t device)
{
	if (vendor != CARD_VENDOR)
		return NULL;
	switch (device) {
	case 0xfaca:
		return "grayskull";
	case 0x401e:
		return "wormhole_b0";
	case 0xb140:
		return "blackhole";
	default:
		return NULL;
	}
}
