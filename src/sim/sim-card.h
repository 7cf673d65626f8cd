/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cards that can be simulated, with the capacities of the real ones.
 *
 * All windows are per bank: an address in them is valid in each of the banks at once, as in
 * tt-metal. TRACE is at the top of DRAM and L1_SMALL at the top of L1: their windows are inside
 * those of DRAM and L1, and cannot be allocated as DRAM or L1.
 *
 * Names begin with sim_ throughout this folder, because other layers have devices and cards too.
 */

#include <stdbool.h>
#include <stdint.h>

#define SIM_CARD_CHIPS_MAX 32u /* a galaxy */

/* The addresses base to base + size - 1 in each of the banks. */
struct sim_window {
	uint64_t base;
	uint64_t size;
	uint32_t banks;
	uint32_t alignment;
};

struct sim_chip {
	const char *arch;
	uint32_t cores;
	uint32_t l1_per_core; /* bytes, including what firmware keeps for itself */
	struct sim_window dram;
	struct sim_window l1;
	struct sim_window system;
	uint64_t trace_size;    /* per bank, at the top of dram */
	uint64_t l1_small_size; /* per bank, at the top of l1 */
};

struct sim_card {
	const char *name;
	uint32_t chips;
	uint32_t local_chips; /* the first ones; the others are reached through them */
	const struct sim_chip *chip;
};

const struct sim_card *sim_card_find(const char *name);
const struct sim_card *sim_card_at(uint32_t index);

struct sim_window sim_card_window(const struct sim_chip *chip, uint32_t type);
uint64_t sim_card_unique_id(const struct sim_card *card, uint32_t board, uint32_t chip);
bool sim_card_is_remote(const struct sim_card *card, uint32_t chip);
void sim_card_declare(const struct sim_card *card, uint32_t board, uint32_t chip, uint32_t device);
