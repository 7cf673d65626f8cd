/* SPDX-License-Identifier: Apache-2.0 */

/* The bank allocator: its rules one by one, then random calls against a map of marked bytes. */

#include "sim/bank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "sim/random.h"

#define KIND 7u

static int get(struct sim_bank *bank, uint64_t size, uint64_t page_size, enum sim_bank_end end,
	       uint64_t *ret_address)
{
	struct sim_bank_request request = {
		.size = size,
		.page_size = page_size,
		.end = end,
		.kind = KIND,
	};

	return sim_bank_alloc(bank, &request, ret_address);
}

static uint64_t must_get(struct sim_bank *bank, uint64_t size, uint64_t page_size,
			 enum sim_bank_end end)
{
	uint64_t address = 0;

	assert(get(bank, size, page_size, end, &address) == 0);
	return address;
}

UNIT(init_refuses_what_cannot_be)
{
	struct sim_bank bank;

	assert(sim_bank_init(&bank, 0, 0, 1, 1) == -EINVAL);
	assert(sim_bank_init(&bank, 0, 64, 0, 1) == -EINVAL);
	assert(sim_bank_init(&bank, 0, 64, 1, 0) == -EINVAL);
	assert(sim_bank_init(&bank, 0, 64, 1, 24) == -EINVAL);
	assert(sim_bank_init(&bank, UINT64_MAX, 64, 1, 32) == -EINVAL);
	assert(sim_bank_init(&bank, 0, UINT64_MAX, 1, 32) == -EINVAL);
	assert(sim_bank_init(&bank, 0, UINT64_C(1) << 60, 64, 32) == -EINVAL);
	assert(sim_bank_init(&bank, 0, 64, 1, 32) == 0);
	sim_bank_deinit(&bank);
}

UNIT(pages_are_dealt_out_to_the_banks)
{
	struct sim_bank bank;
	uint64_t length = 0;

	assert(sim_bank_init(&bank, 32, 1 << 20, 12, 32) == 0);
	/* 12 pages: one in each bank. A 13th makes it two. */
	assert(sim_bank_need(&bank, UINT64_C(12) * 2048, 2048, &length) == 0 && length == 2048);
	assert(sim_bank_need(&bank, UINT64_C(13) * 2048, 2048, &length) == 0 && length == 4096);
	assert(sim_bank_need(&bank, UINT64_C(12) * 2048 + 1, 2048, &length) == 0 && length == 4096);
	/* One byte takes an aligned page in every bank. */
	assert(sim_bank_need(&bank, 1, 1, &length) == 0 && length == 32);
	/* Pages of 1000 bytes are 1024 apart. */
	assert(sim_bank_need(&bank, 24000, 1000, &length) == 0 && length == 2048);
	/* No page size: all in one page. */
	assert(sim_bank_need(&bank, 5000, 0, &length) == 0 && length == 5024);
	sim_bank_deinit(&bank);
}

UNIT(need_refuses_the_empty_and_the_huge)
{
	struct sim_bank bank;
	uint64_t length = 77;

	assert(sim_bank_init(&bank, 0, 4096, 4, 32) == 0);
	assert(sim_bank_need(&bank, 0, 32, &length) == -EINVAL);
	assert(sim_bank_need(&bank, UINT64_C(4) * 4096 + 1, 32, &length) == -ENOMEM);
	assert(sim_bank_need(&bank, UINT64_MAX, 1, &length) == -ENOMEM);
	assert(sim_bank_need(&bank, UINT64_MAX, UINT64_MAX, &length) == -ENOMEM);
	assert(sim_bank_need(&bank, UINT64_MAX, 4096, &length) == -ENOMEM);
	assert(length == 77);
	assert(sim_bank_need(&bank, UINT64_C(4) * 4096, 32, &length) == 0 && length == 4096);
	sim_bank_deinit(&bank);
}

UNIT(bottom_up_takes_the_lowest_hole)
{
	struct sim_bank bank;
	uint64_t a, b, c;

	assert(sim_bank_init(&bank, 32, 4096, 2, 32) == 0);
	a = must_get(&bank, 128, 64, SIM_BANK_BOTTOM);
	b = must_get(&bank, 256, 64, SIM_BANK_BOTTOM);
	c = must_get(&bank, 128, 64, SIM_BANK_BOTTOM);
	assert(a == 32 && b == 96 && c == 224);

	assert(sim_bank_free(&bank, KIND, b) == 0);
	assert(must_get(&bank, 384, 64, SIM_BANK_BOTTOM) == 288); /* too large for the hole */
	assert(must_get(&bank, 128, 64, SIM_BANK_BOTTOM) == b);   /* reused, like any address */
	assert(must_get(&bank, 128, 64, SIM_BANK_BOTTOM) == b + 64);
	sim_bank_deinit(&bank);
}

UNIT(top_down_takes_the_highest_hole)
{
	struct sim_bank bank;
	uint64_t a, b, c;

	assert(sim_bank_init(&bank, 1000, 1000, 1, 16) == 0); /* neither end is aligned */
	a = must_get(&bank, 100, 0, SIM_BANK_TOP);            /* 112 bytes */
	b = must_get(&bank, 160, 0, SIM_BANK_TOP);
	c = must_get(&bank, 16, 0, SIM_BANK_TOP);
	assert(a == 2000 - 112 && b == a - 160 && c == b - 16);

	assert(sim_bank_free(&bank, KIND, b) == 0);
	assert(must_get(&bank, 32, 0, SIM_BANK_TOP) == a - 32);
	assert(must_get(&bank, 16, 0, SIM_BANK_BOTTOM) == 1008);
	sim_bank_deinit(&bank);
}

UNIT(no_room_leaves_everything_as_it_was)
{
	struct sim_bank bank;
	uint64_t address = 77;

	assert(sim_bank_init(&bank, 0, 1024, 4, 64) == 0);
	must_get(&bank, 2048, 64, SIM_BANK_BOTTOM);
	assert(get(&bank, 2304, 64, SIM_BANK_BOTTOM, &address) == -ENOMEM);
	assert(get(&bank, 2304, 64, SIM_BANK_TOP, &address) == -ENOMEM);
	assert(get(&bank, 0, 64, SIM_BANK_TOP, &address) == -EINVAL);
	assert(address == 77 && bank.n_blocks == 1 && bank.used == 512);
	assert(get(&bank, 2048, 64, SIM_BANK_TOP, &address) == 0 && address == 512);
	assert(sim_bank_largest(&bank) == 0);
	assert(get(&bank, 1, 1, SIM_BANK_BOTTOM, &address) == -ENOMEM);
	sim_bank_deinit(&bank);
}

UNIT(holes_that_meet_are_one)
{
	struct sim_bank bank;
	uint64_t at[4];

	assert(sim_bank_init(&bank, 0, 400, 3, 4) == 0);
	for (size_t i = 0; i < 4; i++)
		at[i] = must_get(&bank, 300, 100, SIM_BANK_BOTTOM);

	/* Every other one: half is free, but only in pieces of 100 per bank. */
	assert(sim_bank_free(&bank, KIND, at[0]) == 0);
	assert(sim_bank_free(&bank, KIND, at[2]) == 0);
	assert(bank.used == 200);
	assert(sim_bank_largest(&bank) == 100 && sim_bank_largest_total(&bank) == 300);
	assert(get(&bank, 600, 100, SIM_BANK_BOTTOM, &at[0]) == -ENOMEM);

	assert(sim_bank_free(&bank, KIND, at[1]) == 0);
	assert(sim_bank_largest(&bank) == 300);
	assert(sim_bank_free(&bank, KIND, at[3]) == 0);
	assert(sim_bank_largest(&bank) == 400 && bank.used == 0 && bank.n_blocks == 0);
	sim_bank_deinit(&bank);
}

UNIT(free_wants_the_right_address_and_kind)
{
	struct sim_bank bank;
	uint64_t address;

	assert(sim_bank_init(&bank, 0, 4096, 1, 32) == 0);
	assert(sim_bank_free(&bank, KIND, 0) == -ENOENT);
	address = must_get(&bank, 64, 0, SIM_BANK_TOP);
	assert(sim_bank_free(&bank, KIND, address + 32) == -ENOENT);
	assert(sim_bank_free(&bank, KIND, address - 32) == -ENOENT);
	assert(sim_bank_free(&bank, KIND + 1, address) == -ENOENT);
	assert(bank.n_blocks == 1);
	assert(sim_bank_free(&bank, KIND, address) == 0);
	assert(sim_bank_free(&bank, KIND, address) == -ENOENT);
	sim_bank_deinit(&bank);
}

UNIT(an_owner_is_freed_as_a_whole)
{
	struct sim_bank bank;
	uint64_t address;

	assert(sim_bank_init(&bank, 0, 4096, 1, 32) == 0);
	for (uint32_t i = 0; i < 12; i++) {
		struct sim_bank_request request = {
			.size = 32,
			.kind = i % 2,
			.owner = i % 3,
		};

		assert(sim_bank_alloc(&bank, &request, &address) == 0);
	}
	assert(sim_bank_free_owner(&bank, 1, 2) == 2);
	assert(sim_bank_free_owner(&bank, 1, 2) == 0);
	assert(bank.n_blocks == 10 && bank.used == 320);
	for (size_t i = 0; i < bank.n_blocks; i++)
		assert(bank.blocks[i].kind != 1 || bank.blocks[i].owner != 2);
	sim_bank_deinit(&bank);
}

UNIT(deinit_accepts_what_was_never_used)
{
	struct sim_bank bank = {0};

	sim_bank_deinit(&bank);
	sim_bank_deinit(&bank);
}

/* The naive model: one mark for each byte of a bank, 0 = free, else the number of its buffer. */

#define SPAN UINT64_C(2048)
#define LIVE_MAX 64u
#define STEPS 400u
#define ROUNDS 40u

struct model {
	uint64_t base;
	uint64_t size;
	uint32_t banks;
	uint32_t alignment;
	unsigned char marks[2 * SPAN]; /* by address */
	uint64_t address[LIVE_MAX];
	uint64_t length[LIVE_MAX]; /* 0 = slot not in use */
};

static bool model_is_free(const struct model *model, uint64_t address, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++) {
		if (model->marks[address + i])
			return false;
	}
	return true;
}

/* Per bank, counted page by page. */
static uint64_t model_length(const struct model *model, uint64_t size, uint64_t page_size)
{
	uint64_t in_bank[16] = {0}, length = 0, pages = 0;

	for (uint64_t dealt = 0; dealt < size; dealt += page_size)
		in_bank[pages++ % model->banks]++;
	while (length < page_size)
		length += model->alignment;
	return in_bank[0] * length;
}

/* Tries every address in turn. SPAN * 2 means there is none. */
static uint64_t model_find(const struct model *model, uint64_t length, enum sim_bank_end end)
{
	uint64_t found = 2 * SPAN;

	for (uint64_t a = model->base; a + length <= model->base + model->size; a++) {
		if (a % model->alignment || !model_is_free(model, a, length))
			continue;
		found = a;
		if (end == SIM_BANK_BOTTOM)
			break;
	}
	return found;
}

static uint64_t model_largest(const struct model *model)
{
	uint64_t length = 0;

	while (model_find(model, length + model->alignment, SIM_BANK_BOTTOM) < 2 * SPAN)
		length += model->alignment;
	return length;
}

static void step_alloc(struct sim_bank *bank, struct model *model, struct sim_random *random,
		       uint32_t slot)
{
	uint64_t page_size = sim_random_between(random, 1, 96);
	uint64_t size = sim_random_between(random, 1, page_size * 4 * model->banks);
	enum sim_bank_end end = sim_random_next(random) % 2 ? SIM_BANK_TOP : SIM_BANK_BOTTOM;
	uint64_t length = model_length(model, size, page_size);
	uint64_t expected = model_find(model, length, end);
	uint64_t address = 0;
	int r = get(bank, size, page_size, end, &address);

	if (expected == 2 * SPAN) {
		assert(r == -ENOMEM);
		assert(sim_bank_largest(bank) < length);
		return;
	}
	assert(r == 0 && address == expected);
	model->address[slot] = address;
	model->length[slot] = length;
	memset(&model->marks[address], (int)slot + 1, length);
}

static void step_free(struct sim_bank *bank, struct model *model, uint32_t slot)
{
	assert(sim_bank_free(bank, KIND, model->address[slot]) == 0);
	memset(&model->marks[model->address[slot]], 0, model->length[slot]);
	model->length[slot] = 0;
}

static void compare(const struct sim_bank *bank, const struct model *model)
{
	uint64_t used = 0;
	size_t n = 0;

	for (uint32_t slot = 0; slot < LIVE_MAX; slot++) {
		used += model->length[slot];
		n += model->length[slot] != 0;
	}
	assert(bank->used == used && bank->n_blocks == n);
	assert(sim_bank_largest(bank) == model_largest(model));
	for (size_t i = 1; i < bank->n_blocks; i++)
		assert(bank->blocks[i - 1].address + bank->blocks[i - 1].length <=
		       bank->blocks[i].address);
}

static void play(uint64_t seed)
{
	struct sim_random random = {seed};
	struct model model = {
		.base = sim_random_between(&random, 0, 200),
		.size = sim_random_between(&random, 200, SPAN - 200),
		.banks = (uint32_t)sim_random_between(&random, 1, 16),
		.alignment = UINT32_C(1) << sim_random_between(&random, 0, 6),
	};
	struct sim_bank bank;

	assert(sim_bank_init(&bank, model.base, model.size, model.banks, model.alignment) == 0);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t slot = (uint32_t)(sim_random_next(&random) % LIVE_MAX);

		if (model.length[slot])
			step_free(&bank, &model, slot);
		else
			step_alloc(&bank, &model, &random, slot);
		if (i % 8 == 0)
			compare(&bank, &model);
	}
	sim_bank_deinit(&bank);
}

UNIT(random_calls_match_a_naive_model)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		/* Printed only if the test fails: the last line is the seed to reproduce. */
		printf("seed %" PRIu64 "\n", seed);
		(void)fflush(stdout);
		play(seed);
	}
}
