/* SPDX-License-Identifier: Apache-2.0 */

/* The free list against one mark for each byte. */

#include "model/memory/free-list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/testing/unit.h"

#define SPAN 512u
#define LIVE 48u
#define STEPS 600u

static uint64_t take(struct free_list *list, uint64_t length, bool is_top_down,
		     enum free_list_fit fit)
{
	uint64_t address = 0;

	assert(free_list_take(list, length, is_top_down, fit, &address));
	return address;
}

/* Holes of 16 at 0, of 8 at 32, of 8 at 56 and of 64 at 128. */
static void cut_up(struct free_list *list)
{
	assert(free_list_init(list, 0, 192) == 0);
	assert(take(list, 192, false, FREE_LIST_FIRST) == 0 && list->free == 0);
	assert(free_list_give(list, 0, 16) == 0);
	assert(free_list_give(list, 56, 8) == 0);
	assert(free_list_give(list, 32, 8) == 0);
	assert(free_list_give(list, 128, 64) == 0);
	assert(list->free == 96 && free_list_largest(list) == 64);
}

UNIT(first_fit_takes_the_first_hole_from_its_end)
{
	struct free_list list;

	cut_up(&list);
	assert(take(&list, 8, false, FREE_LIST_FIRST) == 0);
	assert(take(&list, 8, true, FREE_LIST_FIRST) == 184);
	free_list_deinit(&list);
}

UNIT(best_fit_takes_the_smallest_hole_the_first_of_equals)
{
	struct free_list list;

	cut_up(&list);
	assert(take(&list, 8, true, FREE_LIST_BEST) == 56);
	assert(take(&list, 8, false, FREE_LIST_BEST) == 32);
	assert(take(&list, 12, true, FREE_LIST_BEST) == 4);
	free_list_deinit(&list);
}

UNIT(the_bottom_is_what_is_free_below_the_lowest_block)
{
	struct free_list list;

	cut_up(&list);
	assert(free_list_bottom(&list, 0) == 16);
	take(&list, 16, false, FREE_LIST_FIRST);
	assert(free_list_bottom(&list, 0) == 0);
	free_list_deinit(&list);
}

UNIT(an_empty_memory_has_no_hole)
{
	struct free_list list;
	uint64_t address = 7;

	assert(free_list_init(&list, 64, 0) == 0);
	assert(!free_list_take(&list, 1, false, FREE_LIST_FIRST, &address) && address == 7);
	assert(!free_list_has(&list, 1) && free_list_largest(&list) == 0);
	assert(free_list_bottom(&list, 64) == 0);
	free_list_deinit(&list);
}

struct model {
	unsigned char marks[SPAN];
	uint64_t address[LIVE], length[LIVE]; /* length 0 = not in use */
};

/* The hole that a byte is the first of; 0 = it is not. */
static uint64_t model_hole(const struct model *model, uint64_t at)
{
	uint64_t length = 0;

	if (model->marks[at] || (at > 0 && !model->marks[at - 1]))
		return 0;
	while (at + length < SPAN && !model->marks[at + length])
		length++;
	return length;
}

/* SPAN = none. */
static uint64_t model_find(const struct model *model, uint64_t length, bool is_top_down,
			   enum free_list_fit fit)
{
	uint64_t found = SPAN, best = 0;

	for (uint64_t at = 0; at < SPAN; at++) {
		uint64_t room = model_hole(model, at);
		bool is_better;

		if (room < length || room == 0)
			continue;
		if (fit == FREE_LIST_FIRST)
			is_better = found == SPAN || is_top_down;
		else
			is_better = found == SPAN || room < best || (is_top_down && room == best);
		if (!is_better)
			continue;
		found = is_top_down ? at + room - length : at;
		best = room;
	}
	return found;
}

static void model_fill(struct model *model, size_t i, unsigned char mark)
{
	for (uint64_t at = 0; at < model->length[i]; at++)
		model->marks[model->address[i] + at] = mark;
}

static void step(struct free_list *list, struct model *model, unsigned int *seed)
{
	size_t i = (size_t)rand_r(seed) % LIVE;
	bool is_top_down = rand_r(seed) % 2;
	enum free_list_fit fit = rand_r(seed) % 2 ? FREE_LIST_BEST : FREE_LIST_FIRST;
	uint64_t length = 1 + (uint64_t)rand_r(seed) % 24, address = SPAN;

	if (model->length[i]) {
		assert(free_list_give(list, model->address[i], model->length[i]) == 0);
		model_fill(model, i, 0);
		model->length[i] = 0;
		return;
	}
	assert(free_list_has(list, length) == (model_find(model, length, false, fit) < SPAN));
	(void)free_list_take(list, length, is_top_down, fit, &address);
	assert(address == model_find(model, length, is_top_down, fit));
	if (address < SPAN) {
		model->address[i] = address;
		model->length[i] = length;
		model_fill(model, i, 1);
	}
}

static void compare(const struct free_list *list, const struct model *model)
{
	uint64_t free = 0, largest = 0;

	for (uint64_t at = 0; at < SPAN; at++) {
		uint64_t room = model_hole(model, at);

		free += !model->marks[at];
		largest = room > largest ? room : largest;
	}
	assert(list->free == free && free_list_largest(list) == largest);
	assert(free_list_bottom(list, 0) == model_hole(model, 0));
}

UNIT(random_calls_match_a_naive_model)
{
	for (unsigned int round = 1; round <= 40; round++) {
		struct free_list list;
		struct model model = {.marks = {0}};
		unsigned int seed = round;

		/* Printed only if the test fails: the last line is the seed to reproduce. */
		printf("seed %u\n", round);
		(void)fflush(stdout);
		assert(free_list_init(&list, 0, SPAN) == 0);
		for (unsigned int i = 0; i < STEPS; i++) {
			step(&list, &model, &seed);
			compare(&list, &model);
		}
		free_list_deinit(&list);
	}
}
