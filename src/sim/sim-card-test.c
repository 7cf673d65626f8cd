/* SPDX-License-Identifier: Apache-2.0 */

/* The cards have the capacities of the real ones, and every chip has a unique id. */

#include "sim/sim-card.h"

#include <string.h>
#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "sim/testing/fake.h"

static uint64_t capacity(const char *name, uint32_t type)
{
	struct sim_window window = sim_card_window(sim_card_find(name)->chip, type);

	return window.size * window.banks;
}

UNIT(capacities_are_those_of_the_real_cards)
{
	assert(capacity("n150", TTMEM_DRAM) == UINT64_C(12884901504));
	assert(capacity("n300", TTMEM_DRAM) == UINT64_C(12884901504)); /* per chip */
	assert(capacity("galaxy", TTMEM_DRAM) == UINT64_C(12884901504));
	assert(capacity("p150", TTMEM_DRAM) == 8 * (UINT64_C(4278190080) - 64));
	assert(capacity("n150", TTMEM_L1) == 72 * UINT64_C(1395424));
	assert(sim_card_find("n150")->chip->l1_per_core == 1499136);
	assert(sim_card_find("n300")->chip->cores == 64);
	assert(sim_card_find("p150")->chip->cores == 140);
	assert(sim_card_find("galaxy")->chips == 32);
}

UNIT(only_the_second_chip_of_an_n300_is_remote)
{
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		for (uint32_t chip = 0; chip < card->chips; chip++)
			assert(sim_card_is_remote(card, chip) ==
			       (strcmp(card->name, "n300") == 0 && chip == 1));
	}
}

UNIT(unknown_cards_are_refused)
{
	assert(!sim_card_find("n151") && !sim_card_find("") && !sim_card_find(NULL));
	assert(sim_card_at(3) && !sim_card_at(4));
}

UNIT(small_windows_lie_inside_the_large_ones)
{
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		struct sim_window l1 = sim_card_window(card->chip, TTMEM_L1);
		struct sim_window small = sim_card_window(card->chip, TTMEM_L1_SMALL);
		struct sim_window trace = sim_card_window(card->chip, TTMEM_TRACE);
		struct sim_window dram = sim_card_window(card->chip, TTMEM_DRAM);

		assert(small.size && small.base > l1.base && small.banks == l1.banks);
		assert(small.base + small.size == l1.base + l1.size);
		assert(l1.base + l1.size == card->chip->l1_per_core);
		assert(trace.size && trace.base > dram.base && trace.banks == dram.banks);
		assert(trace.base + trace.size == dram.base + dram.size);
		assert(dram.base % dram.alignment == 0 && l1.base % l1.alignment == 0);
		assert(sim_card_window(card->chip, TTMEM_CB).size == 0);
		assert(sim_card_window(card->chip, TTMEM_KERNEL).size == 0);
	}
}

UNIT(unique_ids_are_unique_and_stay)
{
	uint64_t ids[4 * 3 * 32];
	const struct sim_card *card;
	size_t n = 0;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		for (uint32_t board = 0; board < 3; board++) {
			for (uint32_t chip = 0; chip < card->chips; chip++)
				ids[n++] = sim_card_unique_id(card, board, chip);
		}
	}
	for (size_t i = 0; i < n; i++) {
		assert(ids[i]);
		for (size_t k = 0; k < i; k++)
			assert(ids[i] != ids[k]);
	}
	card = sim_card_find("n300");
	assert(sim_card_unique_id(card, 1, 1) == sim_card_unique_id(card, 1, 1));
}

UNIT(a_chip_is_declared_with_all_that_is_known)
{
	const struct sim_card *card = sim_card_find("n300");
	const struct ttmem_device_args *args = &fake_figures()->device;

	sim_card_declare(card, 4, 1, 5);
	assert(args->device == 5 && args->remote == 1);
	assert(args->unique_id == sim_card_unique_id(card, 4, 1));
	assert(strcmp(args->arch, "wormhole_b0") == 0 && strcmp(args->card, "n300") == 0);
	assert(args->cores == 64 && args->l1_per_core == 1499136);
	assert(args->memory[TTMEM_DRAM].capacity == UINT64_C(12884901504));
	assert(args->memory[TTMEM_DRAM].bank_base == 32 && args->memory[TTMEM_DRAM].banks == 12);
	assert(args->memory[TTMEM_DRAM].bank_size == (UINT64_C(1) << 30) - 32);
	assert(args->memory[TTMEM_DRAM].alignment == 32);
	assert(args->memory[TTMEM_L1].banks == 64 && args->memory[TTMEM_L1].alignment == 16);
	assert(args->memory[TTMEM_CB].capacity == 0 && args->memory[TTMEM_KERNEL].banks == 0);
}
