/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks "ttmem map" and "ttmem fit" against the simulated allocator's own lists, for every card
 * and memory, after thousands of random allocations and frees: every free block and every answer.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/memory/free-blocks.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "sim/bank.h"
#include "sim/random.h"
#include "sim/sim-card.h"

#define ROUNDS 300u
#define STEPS 40u

static struct snapshot_window window_of(const struct sim_chip *chip, uint32_t type)
{
	struct sim_window window = sim_card_window(chip, type);

	return (struct snapshot_window){
		.base = window.base,
		.size = window.size,
		.banks = window.banks,
		.alignment = window.alignment,
	};
}

/* A snapshot as read from the book of a process with these blocks. */
static struct snapshot *see(const struct sim_chip *chip, const struct sim_bank *bank)
{
	struct snapshot_process process = {
		.id.pid = 1, .alive = true, .exact = true, .comm = "sim"};
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, 3);
	assert(part);
	for (uint32_t i = 0; i <= TYPES_TRACE; i++)
		part->facts.windows[i] = window_of(chip, i);
	for (size_t i = 0; i < bank->n_blocks; i++) {
		struct snapshot_buffer buffer = {
			.device = 3,
			.address = bank->blocks[i].address,
			.size = bank->blocks[i].length, /* not checked here */
			.type = (uint8_t)bank->blocks[i].kind,
			.banks = bank->banks,
			.size_per_bank = bank->blocks[i].length,
		};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	assert(snapshot_finish(snapshot) == 0);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	return snapshot;
}

/* The allocator's free list as sim/bank.h defines it: the gaps between blocks. */
static void compare_holes(const struct sim_bank *bank, const struct free_blocks *free_blocks)
{
	uint64_t at = bank->base;
	size_t n = 0;

	assert(free_blocks->base == bank->base && free_blocks->size == bank->size);
	assert(free_blocks->used == bank->used && free_blocks->block_count == bank->n_blocks);
	assert(free_blocks->largest == sim_bank_largest(bank));
	assert(free_blocks->guessed == 0 && free_blocks->unplaced == 0);
	for (size_t i = 0; i <= bank->n_blocks; i++) {
		uint64_t end =
			i < bank->n_blocks ? bank->blocks[i].address : bank->base + bank->size;
		uint64_t begin = (at + bank->alignment - 1) / bank->alignment * bank->alignment;

		end = end / bank->alignment * bank->alignment;
		if (begin < end) {
			assert(n < free_blocks->hole_count &&
			       free_blocks->holes[n].address == begin);
			assert(free_blocks->holes[n].length == end - begin);
			n++;
		}
		if (i < bank->n_blocks)
			at = bank->blocks[i].address + bank->blocks[i].length;
	}
	assert(n == free_blocks->hole_count);
}

/* Tries the request on a copy in which the blocks of @without are free. */
static int try_alloc(const struct sim_bank *bank, const struct sim_bank_request *request,
		     const struct free_blocks_fit *without, const struct free_blocks *free_blocks,
		     uint64_t *ret_address)
{
	struct sim_bank copy;
	int r;

	assert(sim_bank_init(&copy, bank->base, bank->size, bank->banks, bank->alignment) == 0);
	copy.blocks = calloc(bank->n_blocks + 1, sizeof(*copy.blocks));
	assert(copy.blocks);
	memcpy(copy.blocks, bank->blocks, bank->n_blocks * sizeof(*copy.blocks));
	copy.n_blocks = bank->n_blocks;
	copy.room = bank->n_blocks + 1;
	for (size_t i = 0; without && i < without->count; i++) {
		const struct free_blocks_block *block = &free_blocks->blocks[without->first + i];

		assert(sim_bank_free(&copy, block->buffer->type, block->address) == 0);
	}
	r = sim_bank_alloc(&copy, request, ret_address);
	sim_bank_deinit(&copy);
	return r;
}

static void compare_answers(const struct sim_bank *bank, const struct free_blocks *free_blocks,
			    struct sim_random *random)
{
	for (unsigned int i = 0; i < 20; i++) {
		bool top = sim_random_next(random) & 1;
		struct sim_bank_request request = {
			.size = 1 + sim_random_next(random) % (bank->size * bank->banks / 3),
			.page_size = 32 + sim_random_next(random) % 20000,
			.end = top ? SIM_BANK_TOP : SIM_BANK_BOTTOM,
		};
		uint64_t address = 0;
		const struct free_blocks_request wanted = {
			.size = request.size, .page_size = request.page_size, .top = top};
		struct free_blocks_fit fit;
		int r = try_alloc(bank, &request, NULL, NULL, &address);

		free_blocks_fit(free_blocks, &wanted, &fit);
		assert((r == 0) == (fit.verdict == FREE_BLOCKS_FITS));
		if (r == 0)
			assert(fit.address == address && fit.length >= fit.need);
		/* Freeing the suggested buffers is enough. */
		if (fit.verdict == FREE_BLOCKS_CUT || fit.verdict == FREE_BLOCKS_FULL) {
			assert(fit.count > 0);
			assert(try_alloc(bank, &request, &fit, free_blocks, &address) == 0);
		}
	}
}

static void one_step(struct sim_bank *bank, uint32_t type, struct sim_random *random)
{
	uint64_t choice = sim_random_next(random);

	if (choice % 5 < 2 && bank->n_blocks > 0) {
		const struct sim_block *block = &bank->blocks[choice / 5 % bank->n_blocks];

		assert(sim_bank_free(bank, block->kind, block->address) == 0);
	} else {
		struct sim_bank_request request = {
			.size = 1 + sim_random_next(random) % (bank->size * bank->banks / 24),
			.page_size = 1 + sim_random_next(random) % 5000,
			.end = choice & 8 ? SIM_BANK_TOP : SIM_BANK_BOTTOM,
			.kind = type,
		};
		uint64_t address;
		int r = sim_bank_alloc(bank, &request, &address);

		assert(r == 0 || r == -ENOMEM);
	}
}

static void one_memory(const struct sim_chip *chip, uint32_t type, struct sim_random *random)
{
	struct sim_window window = sim_card_window(chip, type);
	uint64_t top = type == TYPES_DRAM ? chip->trace_size
		       : type == TYPES_L1 ? chip->l1_small_size
					  : 0;
	struct sim_bank bank;

	assert(sim_bank_init(&bank, window.base, window.size - top, window.banks,
			     window.alignment) == 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct free_blocks free_blocks = FREE_BLOCKS_NULL;
		struct snapshot *snapshot;

		for (unsigned int step = 0; step < STEPS; step++)
			one_step(&bank, type, random);
		snapshot = see(chip, &bank);
		assert(free_blocks_find(snapshot, 0, &snapshot->processes[0].parts[0], type,
					&free_blocks) == 0);
		compare_holes(&bank, &free_blocks);
		compare_answers(&bank, &free_blocks, random);
		free_blocks_deinit(&free_blocks);
		snapshot_free(snapshot);
	}
	sim_bank_deinit(&bank);
}

UNIT(holes_are_those_of_the_allocator)
{
	struct sim_random random = {20};
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		for (uint32_t type = 0; type <= TYPES_TRACE; type++)
			one_memory(card->chip, type, &random);
	}
}
