/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of simulated cards, and how a chip of one is declared to ttmem.
 *
 * Where the numbers come from: bank counts and sizes, L1 per core and alignments are those of
 * tt-metal's SoC descriptions. The first 32 (Blackhole: 64) bytes of each DRAM bank are never
 * allocated, so an n150 offers 12 x (1 GiB - 32) = 12884901504 bytes; the upper 16 MiB of a
 * Blackhole bank cannot be addressed. The start of allocatable L1 differs between releases; the
 * ones here give the bank sizes that tt-metal prints when L1 runs out (1395424 bytes less L1_SMALL
 * on Wormhole).
 */

#include "sim/sim-card.h"

#include <string.h>
#include <ttmem/ttmem.h>

#include "sim/random.h"

#define KIB UINT64_C(1024)
#define GIB (UINT64_C(1) << 30)

#define WORMHOLE_L1 (UINT64_C(1464) * KIB)
#define WORMHOLE_L1_BASE UINT64_C(103712)
#define WORMHOLE_DRAM_BASE UINT64_C(32)

#define BLACKHOLE_L1 (UINT64_C(1536) * KIB)
#define BLACKHOLE_L1_BASE UINT64_C(103040)
#define BLACKHOLE_DRAM_BANK UINT64_C(4278190080) /* 4 GiB - 16 MiB */
#define BLACKHOLE_DRAM_BASE UINT64_C(64)

#define TRACE_SIZE UINT64_C(27560000) /* per bank, as requested by tt-metal's LLM demos */
#define L1_SMALL_SIZE (UINT64_C(32) * KIB)

/* One huge page of the host; its start belongs to the command queues' pointers. */
#define SYSTEM_WINDOW                                                               \
	{                                                                           \
		.base = 4 * KIB, .size = GIB - 4 * KIB, .banks = 1, .alignment = 64 \
	}

#define WORMHOLE(n_cores)                                                                          \
	{                                                                                          \
		.arch = "wormhole_b0", .cores = (n_cores), .l1_per_core = WORMHOLE_L1,             \
		.dram = {WORMHOLE_DRAM_BASE, GIB - WORMHOLE_DRAM_BASE, 12, 32},                    \
		.l1 = {WORMHOLE_L1_BASE, WORMHOLE_L1 - WORMHOLE_L1_BASE, (n_cores), 16},           \
		.system = SYSTEM_WINDOW, .trace_size = TRACE_SIZE, .l1_small_size = L1_SMALL_SIZE, \
	}

static const struct sim_chip wormhole_72 = WORMHOLE(72);
static const struct sim_chip wormhole_64 = WORMHOLE(64);

static const struct sim_chip blackhole_140 = {
	.arch = "blackhole",
	.cores = 140,
	.l1_per_core = BLACKHOLE_L1,
	.dram = {BLACKHOLE_DRAM_BASE, BLACKHOLE_DRAM_BANK - BLACKHOLE_DRAM_BASE, 8, 64},
	.l1 = {BLACKHOLE_L1_BASE, BLACKHOLE_L1 - BLACKHOLE_L1_BASE, 140, 16},
	.system = SYSTEM_WINDOW,
	.trace_size = TRACE_SIZE,
	.l1_small_size = L1_SMALL_SIZE,
};

static const struct sim_card cards[] = {
	{"n150", 1, 1, &wormhole_72},
	{"n300", 2, 1, &wormhole_64},
	{"p150", 1, 1, &blackhole_140},
	{"galaxy", 32, 32, &wormhole_72},
};

#define SIM_CARD_COUNT (sizeof(cards) / sizeof(cards[0]))

/**
 * sim_card_find() - look a card up by its name
 * @name: "n150", "n300", "p150" or "galaxy"
 *
 * Return: the card, or NULL if there is none of that name.
 */
const struct sim_card *sim_card_find(const char *name)
{
	for (size_t i = 0; i < SIM_CARD_COUNT; i++) {
		if (name && strcmp(cards[i].name, name) == 0)
			return &cards[i];
	}
	return NULL;
}

/**
 * sim_card_at() - go through all cards
 * @index: from 0 upwards
 *
 * Return: the card, or NULL after the last one.
 */
const struct sim_card *sim_card_at(uint32_t index)
{
	return index < SIM_CARD_COUNT ? &cards[index] : NULL;
}

/* The top of a window, with the same banks. */
static struct sim_window window_top(const struct sim_window *window, uint64_t size)
{
	return (struct sim_window){
		.base = window->base + window->size - size,
		.size = size,
		.banks = window->banks,
		.alignment = window->alignment,
	};
}

/**
 * sim_card_window() - the addresses of a kind of memory
 * @chip: the chip
 * @type: TTMEM_DRAM to TTMEM_TRACE
 *
 * Return: the window; empty for a type that has no memory of its own (circular buffers are in L1
 * and kernels in DRAM).
 */
struct sim_window sim_card_window(const struct sim_chip *chip, uint32_t type)
{
	switch (type) {
	case TTMEM_DRAM:
		return chip->dram;
	case TTMEM_L1:
		return chip->l1;
	case TTMEM_SYSTEM_MEMORY:
		return chip->system;
	case TTMEM_L1_SMALL:
		return window_top(&chip->l1, chip->l1_small_size);
	case TTMEM_TRACE:
		return window_top(&chip->dram, chip->trace_size);
	default:
		return (struct sim_window){0};
	}
}

/**
 * sim_card_unique_id() - an ASIC id for a simulated chip
 * @card: the card
 * @board: distinguishes several boards of one kind
 * @chip: which chip of the board
 *
 * Return: the same number, never 0, for the same arguments in every process, so that two processes
 * using one simulated chip are seen to share it.
 */
uint64_t sim_card_unique_id(const struct sim_card *card, uint32_t board, uint32_t chip)
{
	struct sim_random mix = {(uint64_t)board << 32 | chip};
	uint64_t id;

	for (const char *c = card->name; *c; c++)
		mix.state = sim_random_next(&mix) ^ (unsigned char)*c;
	id = sim_random_next(&mix);
	return id ? id : 1;
}

/**
 * sim_card_is_remote() - whether a chip is reached through another one
 * @card: the card
 * @chip: which of its chips
 *
 * Return: true if the chip has no connection of its own to the host.
 */
bool sim_card_is_remote(const struct sim_card *card, uint32_t chip)
{
	return chip >= card->local_chips;
}

/**
 * sim_card_declare() - describe a device to ttmem
 * @card: the card
 * @board: distinguishes several boards of one kind
 * @chip: which chip of the board
 * @device: the number under which the process knows it
 */
void sim_card_declare(const struct sim_card *card, uint32_t board, uint32_t chip, uint32_t device)
{
	struct ttmem_device_args args = {
		.struct_size = sizeof(args),
		.device = device,
		.unique_id = sim_card_unique_id(card, board, chip),
		.arch = card->chip->arch,
		.card = card->name,
		.remote = sim_card_is_remote(card, chip),
		.l1_per_core = card->chip->l1_per_core,
		.cores = card->chip->cores,
	};

	for (uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
		struct sim_window window = sim_card_window(card->chip, type);

		args.memory[type] = (struct ttmem_memory_facts){
			.capacity = window.size * window.banks,
			.bank_base = window.base,
			.bank_size = window.size,
			.banks = window.banks,
			.alignment = window.alignment,
		};
	}
	ttmem_device(&args);
}
