/* SPDX-License-Identifier: Apache-2.0 */

/* No user gets what others need. */

#include "base/quota.h"

#include <string.h>

#include "base/clock.h"
#include "base/testing/unit.h"

#define NOW (UINT64_C(1000) * NS_PER_S)

UNIT(one_user_alone_gets_half)
{
	assert(quota_rest(100, 0, 0) == 50);
	assert(quota_rest(100, 30, 30) == 20);
	assert(quota_rest(100, 50, 50) == 0);
}

UNIT(every_further_user_finds_something_left)
{
	uint64_t used = 0, total = 1 << 20;

	for (int user = 0; user < 16; user++) {
		uint64_t room = quota_rest(total, used, 0);

		assert(room > 0 && room <= (total - used) / 2);
		used += room;
		assert(quota_rest(total, used, room) == 0);
	}
	assert(used < total);
}

UNIT(whoever_has_more_than_is_left_gets_no_more)
{
	assert(quota_rest(100, 90, 60) == 0);
	assert(quota_rest(100, 90, 5) == 2);
	assert(quota_rest(100, 120, 5) == 0);
	assert(quota_rest(UINT64_MAX, 0, 0) == UINT64_MAX / 2);
}

UNIT(a_limit_for_each_user_is_exact)
{
	struct quota quota = {.total = 10, .each = 4};

	assert(quota_room(&quota, 7) == 4);
	assert(!quota_take(&quota, 7, 5) && quota.refused == 1);
	assert(quota_take(&quota, 7, 4) && quota.refused == 1);
	assert(quota_room(&quota, 7) == 0 && !quota_take(&quota, 7, 1));
	/* The total counts too. */
	assert(quota_take(&quota, 8, 4));
	assert(quota_room(&quota, 9) == 2 && !quota_take(&quota, 9, 3) && quota_take(&quota, 9, 2));
	assert(quota_room(&quota, 8) == 0 && quota.used == 10 && quota.refused == 3);
	quota_give(&quota, 7, 1);
	assert(quota_room(&quota, 7) == 1 && quota_room(&quota, 8) == 0);
	quota_deinit(&quota);
	assert(quota.used == 0 && quota_room(&quota, 7) == 4);
	quota_deinit(&quota);
}

UNIT(nothing_of_nothing_can_be_taken)
{
	struct quota none = {0}, one = {.total = 1, .each = 1};

	assert(quota_room(&none, 0) == 0 && quota_most(&none) == 0);
	assert(quota_take(&none, 0, 0) && !quota_take(&none, 0, 1) && none.count == 0);
	quota_give(&none, 0, 1); /* of one who has nothing */
	assert(none.used == 0);
	assert(quota_take(&one, 0, 1) && !quota_take(&one, 0, 1) && !quota_take(&one, 1, 1));
	quota_deinit(&one);
	quota_deinit(&none);
}

UNIT(only_so_many_users_have_something)
{
	struct quota quota = {.total = 100, .each = 10, .users_max = 2};

	assert(quota_take(&quota, 1, 1) && quota_take(&quota, UINT64_MAX, 1));
	assert(quota_room(&quota, 3) == 0 && !quota_take(&quota, 3, 1));
	assert(quota_take(&quota, 1, 1)); /* one of them */
	quota_give(&quota, UINT64_MAX, 1);
	assert(quota_take(&quota, 3, 1));
	quota_deinit(&quota);
}

/* After a restart the order may be another one; nobody loses what there was room for before. */
UNIT(what_was_there_before_counts_only_against_the_total)
{
	struct quota quota = {.total = 1024};

	assert(quota_restore(&quota, 2, 256));
	assert(quota_restore(&quota, 1, 512));
	assert(!quota_take(&quota, 1, 1));
	assert(!quota_restore(&quota, 1, 257) && quota.refused == 2);
	assert(quota_restore(&quota, 1, 256) && quota.used == 1024);
	quota_deinit(&quota);
}

UNIT(no_more_is_given_back_than_was_taken)
{
	struct quota quota = {.total = 8};

	assert(quota_take(&quota, 1, 2) && quota_take(&quota, 2, 1));
	quota_give(&quota, 1, 5);
	assert(quota.used == 1 && quota_used(&quota, 1) == 0 && quota_used(&quota, 2) == 1);
	quota_deinit(&quota);
}

UNIT(what_is_added_anyway_counts)
{
	struct quota quota = {.total = 8};

	assert(quota_add(&quota, 1, 20) == 0);
	assert(quota.used == 20 && quota_room(&quota, 1) == 0 && quota_room(&quota, 2) == 0);
	quota.each = 30;
	assert(quota_room(&quota, 1) == 0); /* the total is used up */
	quota_give(&quota, 1, 20);
	assert(quota_room(&quota, 1) == 8);
	quota_deinit(&quota);
}

UNIT(users_take_turns_in_a_circle)
{
	struct quota quota = {.total = 10};

	quota_had_turn(&quota, 2);
	assert(quota_turn(&quota, 3) < quota_turn(&quota, UINT64_MAX));
	assert(quota_turn(&quota, UINT64_MAX) < quota_turn(&quota, 0));
	assert(quota_turn(&quota, 0) < quota_turn(&quota, 1));
	assert(quota_turn(&quota, 1) < quota_turn(&quota, 2));
}

#define MODEL_USERS 200u

/* The same with one counter for each user that there can be. */
struct model {
	struct quota limits;
	uint64_t own[MODEL_USERS];
};

static uint64_t model_sum(const struct model *model, uint64_t *ret_users, uint64_t *ret_most)
{
	uint64_t sum = 0;

	*ret_users = *ret_most = 0;
	for (size_t i = 0; i < MODEL_USERS; i++) {
		sum += model->own[i];
		*ret_users += model->own[i] > 0;
		*ret_most = model->own[i] > *ret_most ? model->own[i] : *ret_most;
	}
	return sum;
}

static uint64_t model_room(const struct model *model, uint64_t key)
{
	uint64_t users, most, used = model_sum(model, &users, &most), own = model->own[key];
	uint64_t room = 0, total = model->limits.total, each = model->limits.each;

	if (model->limits.users_max && own == 0 && users >= model->limits.users_max)
		return 0;
	/* One after the other, as long as the rule allows it. */
	while (each ? own + room < each && used + room < total : used + 2 * room + own + 2 <= total)
		room++;
	return room;
}

static uint64_t model_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void model_check(const struct quota *quota, const struct model *model, uint64_t key)
{
	uint64_t users, most, used = model_sum(model, &users, &most);

	assert(quota->used == used && quota->count == users && quota_most(quota) == most);
	assert(quota_used(quota, key * 3) == model->own[key]);
	assert(quota_room(quota, key * 3) == model_room(model, key));
}

static void model_run(struct model model, uint64_t users, uint64_t seed)
{
	struct quota quota = model.limits;
	uint64_t refused = 0;

	for (int i = 0; i < 2000; i++) {
		uint64_t key = model_random(&seed) % users, amount = model_random(&seed) % 12;

		switch (model_random(&seed) % 4) {
		case 0: /* all that there is, or one more */
			amount = model_room(&model, key) + (amount & 1);
			__attribute__((fallthrough));
		case 1:
			if (amount <= model_room(&model, key))
				model.own[key] += amount;
			else
				refused++;
			quota_take(&quota, key * 3, amount);
			break;
		default:
			amount = amount > model.own[key] ? model.own[key] : amount;
			model.own[key] -= amount;
			quota_give(&quota, key * 3, amount);
			break;
		}
		model_check(&quota, &model, key);
		assert(quota.refused == refused);
	}
	quota_deinit(&quota);
}

UNIT(shares_are_those_of_a_naive_implementation)
{
	const struct quota limits[] = {
		{.total = 400},
		{.total = 400, .users_max = 20},
		{.total = 400, .each = 16},
		{.total = 7, .each = 400},
		{.total = UINT32_MAX, .each = 1},
		{.total = 1},
		{.total = 2},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		model_run((struct model){.limits = limits[i]}, MODEL_USERS, i);
		model_run((struct model){.limits = limits[i]}, 3, i);
		model_run((struct model){.limits = limits[i]}, 1, i);
	}
}

UNIT(a_user_in_debt_waits_until_it_is_paid)
{
	struct quota_rate rate = {.burst = 100, .per_second = 10};

	assert(quota_rate_take(&rate, 7, 150, NOW)); /* more than there is: a debt of 50 */
	assert(!quota_rate_take(&rate, 7, 1, NOW));
	assert(!quota_rate_take(&rate, 7, 1, NOW + 5 * NS_PER_S));
	assert(quota_rate_take(&rate, 7, 1, NOW + 6 * NS_PER_S));
	assert(rate.refused == 2);
	/* In steps that are too short for one. */
	rate = (struct quota_rate){.burst = 1, .per_second = 10};
	assert(quota_rate_take(&rate, 7, 1, NOW));
	for (uint64_t ms = 1; ms < 100; ms++)
		assert(!quota_rate_take(&rate, 7, 1, NOW + ms * NS_PER_MS));
	assert(quota_rate_take(&rate, 7, 1, NOW + 100 * NS_PER_MS));
}

UNIT(another_user_is_not_affected)
{
	struct quota_rate rate = {.burst = 100, .per_second = 10};

	assert(quota_rate_take(&rate, 7, 1000, NOW) && !quota_rate_take(&rate, 7, 1, NOW));
	assert(quota_rate_take(&rate, 0, 100, NOW) && !quota_rate_take(&rate, 0, 1, NOW));
	assert(quota_rate_take(&rate, 8, 100, NOW));
}

UNIT(users_beyond_the_maximum_share_one_rate)
{
	struct quota_rate rate = {.burst = 100, .per_second = 10};

	for (uint32_t uid = 1; uid <= QUOTA_RATE_USERS_MAX; uid++)
		assert(quota_rate_take(&rate, uid, 1000, NOW));
	assert(quota_rate_take(&rate, 1000, 100, NOW));
	assert(!quota_rate_take(&rate, 1001, 1, NOW));
	/* Those that are full again are free for others. */
	assert(quota_rate_take(&rate, 1001, 100, NOW + 1000 * NS_PER_S));
	assert(quota_rate_take(&rate, 1002, 100, NOW + 1000 * NS_PER_S));
}

UNIT(a_reserve_is_left_alone)
{
	struct quota_rate rate = {.burst = 100, .per_second = 10};

	assert(quota_rate_has(&rate, 7, 99, NOW) && !quota_rate_has(&rate, 7, 100, NOW));
	quota_rate_pay(&rate, 7, 50, NOW);
	assert(quota_rate_has(&rate, 7, 49, NOW) && !quota_rate_has(&rate, 7, 50, NOW));
	quota_rate_pay(&rate, 7, 50, NOW);
	assert(!quota_rate_has(&rate, 7, 0, NOW) && quota_rate_has(&rate, 8, 99, NOW));
	assert(quota_rate_has(&rate, 7, 0, NOW + NS_PER_S / 10));
	assert(rate.refused == 0);
}

UNIT(rates_are_those_of_a_naive_implementation)
{
	struct quota_rate rate = {.burst = 50, .per_second = 7};
	uint64_t used[16] = {0}, seed = 5, refused = 0, now = NOW;

	for (int i = 0; i < 5000; i++) {
		uint64_t user = model_random(&seed) % 16, amount = model_random(&seed) % 40;

		/* Whole seconds, so that the model need not round. */
		if (model_random(&seed) % 4 == 0) {
			now += NS_PER_S;
			for (size_t k = 0; k < 16; k++)
				used[k] -= used[k] < 7 ? used[k] : 7;
		}
		assert(quota_rate_take(&rate, user * 5, amount, now) == (used[user] < 50));
		if (used[user] < 50)
			used[user] += amount;
		else
			refused++;
		assert(rate.refused == refused);
	}
}

UNIT(refusals_are_reported_once_a_minute)
{
	struct quota_rate rate = {.burst = 1, .per_second = 1};

	assert(quota_rate_take(&rate, 7, 1000, NOW));
	assert(quota_rate_report(&rate, 7, NOW) == 0);
	assert(!quota_rate_take(&rate, 7, 1, NOW));
	assert(quota_rate_report(&rate, 7, NOW) == 1);
	for (int i = 0; i < 10; i++) {
		assert(!quota_rate_take(&rate, 7, 1, NOW + NS_PER_S));
		assert(quota_rate_report(&rate, 7, NOW + NS_PER_S) == 0);
	}
	assert(quota_rate_report(&rate, 7, NOW + QUOTA_RATE_REPORT_NS) == 10);
}
