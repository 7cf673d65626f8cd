/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replaying a run on another card gives, event for event, what the simulated allocator of that card
 * does: the same free bytes, the same largest hole, and the same first allocation that fails.
 */

#include "model/memory/refit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "model/cards/card.h"
#include "sim/device.h"
#include "sim/random.h"
#include "sim/sim-card.h"
#include "sim/testing/fake.h"

#define SLOTS 512u
#define STEPS 3000u
#define ROUNDS 3u

/* What happened on the card where it was recorded. */
struct step {
	bool is_free;
	uint32_t slot;
	struct sim_request request;
	struct refit_buffer buffer; /* as the library was told of it */
};

struct run {
	struct step steps[STEPS];
	size_t count;
};

/* The two that must agree. */
struct pair {
	struct sim_device device;
	struct refit *refit;
	uint64_t address[SLOTS];
	uint32_t type[SLOTS];
};

static struct refit_buffer told(void)
{
	const struct ttmem_alloc_args *args = &fake_figures()->alloc;

	return (struct refit_buffer){
		.type = args->type,
		.flags = args->flags,
		.address = args->address,
		.size = args->size,
		.shape = {.size_per_bank = args->size_per_bank,
			  .banks = args->banks,
			  .flags = args->shape_flags,
			  .page_size = args->page_size},
	};
}

/* Mostly DRAM and L1; sizes that fill the smallest memory in some hundred steps. */
static struct sim_request random_request(struct sim_random *random)
{
	static const uint32_t types[] = {TTMEM_DRAM, TTMEM_DRAM,  TTMEM_DRAM,   TTMEM_L1,
					 TTMEM_L1,   TTMEM_TRACE, TTMEM_KERNEL, TTMEM_CB};
	uint32_t type = types[sim_random_next(random) % (sizeof(types) / sizeof(types[0]))];
	bool is_large = type == TTMEM_DRAM;
	uint64_t page = UINT64_C(32) << sim_random_between(random, 0, 7);
	uint64_t most = is_large ? UINT64_C(200000) : 64;

	return (struct sim_request){
		.type = type,
		.size = page * sim_random_between(random, 1, most) - sim_random_next(random) % page,
		.page_size = sim_random_next(random) % 8 ? page : 0,
	};
}

/* As it ran on @card, which had room for all that is kept. */
static void record(struct run *run, const struct sim_card *card, uint64_t seed)
{
	struct sim_random random = {seed};
	struct sim_device device;
	uint64_t address[SLOTS] = {0};
	uint32_t type[SLOTS];
	bool is_live[SLOTS] = {false};

	assert(sim_device_init(&device, card, 0, 0, 0, NULL) == 0);
	run->count = 0;
	while (run->count < STEPS) {
		struct step *step = &run->steps[run->count];
		uint32_t slot = (uint32_t)(sim_random_next(&random) % SLOTS);

		*step = (struct step){.slot = slot, .is_free = is_live[slot]};
		if (step->is_free) {
			assert(sim_device_free(&device, type[slot], address[slot]) == 0);
			is_live[slot] = false;
			run->count++;
			continue;
		}
		step->request = random_request(&random);
		if (sim_device_alloc(&device, &step->request, &address[slot]) < 0)
			continue; /* the program gave up on this one */
		step->buffer = told();
		type[slot] = step->request.type;
		is_live[slot] = true;
		run->count++;
	}
	sim_device_deinit(&device);
}

static struct snapshot_window window_of(const struct sim_bank *bank)
{
	return (struct snapshot_window){bank->base, bank->size, bank->banks, bank->alignment};
}

static void open_pair(struct pair *pair, const struct sim_card *from, const struct sim_card *to)
{
	struct refit_rules rules = {.fit = FREE_LIST_FIRST};

	assert(sim_device_init(&pair->device, to, 0, 0, 0, NULL) == 0);
	for (uint32_t type = 0; type < REFIT_MEMORIES; type++) {
		struct sim_window window = sim_card_window(from->chip, type);

		rules.from[type] = (struct snapshot_window){window.base, window.size, window.banks,
							    window.alignment};
		rules.to[type] = window_of(sim_device_bank(&pair->device, type));
	}
	pair->refit = refit_new(&rules);
	assert(pair->refit);
}

static void close_pair(struct pair *pair)
{
	pair->refit = refit_free(pair->refit);
	sim_device_deinit(&pair->device);
}

/* Whether both did it; both must say the same. */
static bool play_step(struct pair *pair, const struct step *step, uint64_t moment)
{
	const struct sim_bank *bank;
	struct refit_failure failure = {0};
	int a, b;

	if (step->is_free) {
		assert(sim_device_free(&pair->device, pair->type[step->slot],
				       pair->address[step->slot]) == 0);
		assert(refit_give(pair->refit, step->slot) == 0);
		return true;
	}
	bank = sim_device_bank(&pair->device, step->request.type);
	a = sim_device_alloc(&pair->device, &step->request, &pair->address[step->slot]);
	b = refit_take(pair->refit, step->slot, &step->buffer, moment, &failure);
	assert((a == 0) == (b == 0));
	if (a < 0) {
		assert(b == REFIT_FAILED && failure.banks == bank->banks);
		assert(failure.largest == sim_bank_largest(bank));
		return false;
	}
	pair->type[step->slot] = step->request.type;
	return true;
}

/* The tightest moment, as the simulated allocator saw it. */
struct tightest {
	uint64_t used[REFIT_MEMORIES], largest[REFIT_MEMORIES], moment[REFIT_MEMORIES];
};

static void look(struct pair *pair, struct tightest *tightest, uint64_t moment)
{
	for (uint32_t type = 0; type < REFIT_MEMORIES; type++) {
		const struct sim_bank *bank = sim_device_bank(&pair->device, type);

		if (bank->used <= tightest->used[type])
			continue;
		tightest->used[type] = bank->used;
		tightest->largest[type] = sim_bank_largest(bank);
		tightest->moment[type] = moment;
	}
}

static void compare_margins(const struct pair *pair, const struct tightest *tightest)
{
	for (uint32_t type = 0; type < REFIT_MEMORIES; type++) {
		const struct refit_margin *margin = &refit_margins(pair->refit)[type];

		assert(margin->is_known == (tightest->moment[type] > 0));
		if (!margin->is_known)
			continue;
		assert(margin->moment == tightest->moment[type]);
		assert(margin->largest == tightest->largest[type]);
	}
}

/* Returns the first step that failed; STEPS = none did. */
static size_t play(const struct run *run, const struct sim_card *from, const struct sim_card *to)
{
	struct tightest tightest = {0};
	struct pair pair = {0};
	size_t i;

	open_pair(&pair, from, to);
	for (i = 0; i < run->count && play_step(&pair, &run->steps[i], i + 1); i++)
		look(&pair, &tightest, i + 1);
	compare_margins(&pair, &tightest);
	if (from == to)
		assert(refit_counts(pair.refit)->same == refit_counts(pair.refit)->taken);
	close_pair(&pair);
	return i;
}

UNIT(refit_fails_at_the_same_event_as_the_simulated_allocator)
{
	static struct run run;
	const struct sim_card *from, *to;
	size_t failed = 0, passed = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		for (uint32_t i = 0; (from = sim_card_at(i)); i++) {
			record(&run, from, seed);
			for (uint32_t k = 0; (to = sim_card_at(k)); k++) {
				/* Printed only if the test fails. */
				printf("seed %" PRIu64 ", %s on %s\n", seed, from->name, to->name);
				(void)fflush(stdout);
				if (play(&run, from, to) < STEPS)
					failed++;
				else
					passed++;
			}
		}
	}
	/* Both must have been compared. */
	printf("%zu failed, %zu passed\n", failed, passed);
	assert(failed >= ROUNDS && passed >= ROUNDS);
}

UNIT(what_ran_on_a_card_runs_on_it_again)
{
	static struct run run;
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		record(&run, card, 77);
		assert(play(&run, card, card) == STEPS);
	}
}

UNIT(the_two_tables_of_cards_agree)
{
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		struct snapshot_facts declared = {0};
		struct refit_card other = {.facts = card_find(card->name)};
		struct refit_rules rules = {0};
		struct sim_device device;

		assert(other.facts && sim_device_init(&device, card, 0, 0, 0, NULL) == 0);
		other.l1_banks = other.facts->cores; /* as with slow dispatch */
		for (uint32_t type = 0; type < REFIT_MEMORIES; type++) {
			struct sim_window window = sim_card_window(card->chip, type);

			declared.windows[type] = (struct snapshot_window){
				window.base, window.size, window.banks, window.alignment};
		}
		/* By name, and as its owner declared it. */
		for (int named = 0; named < 2; named++) {
			refit_rules_init(&rules, &declared,
					 named ? &other : &(struct refit_card){0});
			for (uint32_t type = 0; type < REFIT_MEMORIES; type++) {
				struct snapshot_window window =
					window_of(sim_device_bank(&device, type));

				assert(memcmp(&rules.to[type], &window, sizeof(window)) == 0);
			}
		}
		sim_device_deinit(&device);
	}
}
