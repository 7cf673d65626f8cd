/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known about cards by name: the one table of cores and sizes. It fills in what no process
 * has declared. A process that opened the device knows better, because cores and banks may be
 * disabled.
 */

#include <stddef.h>
#include <stdint.h>

struct card_facts {
	const char *card; /* as the driver calls it */
	const char *arch; /* as tt-metal does */
	/* Per chip; 0 = not known. */
	uint32_t cores;
	uint32_t l1_per_core;
	uint32_t dram_banks;
	uint64_t dram_bank_size;
	/* Where allocators begin in a bank, as in tt-metal's newer releases, and how they align. */
	uint32_t dram_base, dram_alignment;
	uint32_t l1_base, l1_alignment;
};

/* The table, from 0 on; NULL after its end. */
const struct card_facts *card_at(size_t index);

/* NULL for a card that is not in the table. */
const struct card_facts *card_find(const char *card);

/*
 * Banks of L1 that tt-metal hands out with fast dispatch, which takes some of the cores for itself; with slow
 * dispatch it is all of them. 0 = not known.
 */
uint32_t card_l1_banks(const struct card_facts *facts);

/* Bytes of a type on one chip; 0 = not known, or not a separate memory. */
uint64_t card_capacity(const struct card_facts *facts, uint32_t type);

/* The architecture for a PCI id; NULL for an id that is not Tenstorrent's. */
const char *card_arch(uint32_t vendor, uint32_t device);
