/* SPDX-License-Identifier: Apache-2.0 */

/* Who takes too much waits, and nobody else. */

#include "daemon/notify/user-rate.h"

#include "base/clock.h"
#include "base/testing/unit.h"

#define NOW (UINT64_C(1000) * NS_PER_S)

UNIT(a_user_in_debt_waits_until_it_is_paid)
{
	struct user_rate rate = {.burst = 100, .per_second = 10};

	assert(user_rate_take(&rate, 7, 150, NOW)); /* more than there is: a debt of 50 */
	assert(!user_rate_take(&rate, 7, 1, NOW));
	assert(!user_rate_take(&rate, 7, 1, NOW + 5 * NS_PER_S));
	assert(user_rate_take(&rate, 7, 1, NOW + 6 * NS_PER_S));
	assert(rate.refused == 2);
	/* In steps that are too short for one. */
	rate = (struct user_rate){.burst = 1, .per_second = 10};
	assert(user_rate_take(&rate, 7, 1, NOW));
	for (uint64_t ms = 1; ms < 100; ms++)
		assert(!user_rate_take(&rate, 7, 1, NOW + ms * NS_PER_MS));
	assert(user_rate_take(&rate, 7, 1, NOW + 100 * NS_PER_MS));
}

UNIT(another_user_is_not_affected)
{
	struct user_rate rate = {.burst = 100, .per_second = 10};

	assert(user_rate_take(&rate, 7, 1000, NOW) && !user_rate_take(&rate, 7, 1, NOW));
	assert(user_rate_take(&rate, 0, 100, NOW) && !user_rate_take(&rate, 0, 1, NOW));
	assert(user_rate_take(&rate, 8, 100, NOW));
}

UNIT(users_beyond_the_maximum_share_one_bucket)
{
	struct user_rate rate = {.burst = 100, .per_second = 10};

	for (uint32_t uid = 1; uid <= USER_RATE_USERS_MAX; uid++)
		assert(user_rate_take(&rate, uid, 1000, NOW));
	assert(user_rate_take(&rate, 1000, 100, NOW));
	assert(!user_rate_take(&rate, 1001, 1, NOW));
	/* Buckets that are full again are free for others. */
	assert(user_rate_take(&rate, 1001, 100, NOW + 1000 * NS_PER_S));
	assert(user_rate_take(&rate, 1002, 100, NOW + 1000 * NS_PER_S));
}

UNIT(refusals_are_reported_once_a_minute)
{
	struct user_rate rate = {.burst = 1, .per_second = 1};

	assert(user_rate_take(&rate, 7, 1000, NOW));
	assert(user_rate_tell(&rate, 7, NOW) == 0);
	assert(!user_rate_take(&rate, 7, 1, NOW));
	assert(user_rate_tell(&rate, 7, NOW) == 1);
	for (int i = 0; i < 10; i++) {
		assert(!user_rate_take(&rate, 7, 1, NOW + NS_PER_S));
		assert(user_rate_tell(&rate, 7, NOW + NS_PER_S) == 0);
	}
	assert(user_rate_tell(&rate, 7, NOW + USER_RATE_PERIOD_NS) == 10);
}
