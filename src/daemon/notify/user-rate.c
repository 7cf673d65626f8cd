/* SPDX-License-Identifier: Apache-2.0 */

/* Buckets that are brought up to date when they are looked at. */

#include "daemon/notify/user-rate.h"

#include "base/bits.h"
#include "base/clock.h"

static void user_rate_refill(const struct user_rate *rate, struct user_rate_user *user,
			     uint64_t now_ns)
{
	uint64_t passed = now_ns - bits_min(user->seen_ns, now_ns);
	/* Two days fit; nobody's debt lasts that long. */
	uint64_t back =
		bits_min(passed, UINT64_C(172800) * NS_PER_S) / NS_PER_MS * rate->per_second / 1000;

	if (back == 0)
		return; /* so that small steps add up */
	user->spent = user->spent > (int64_t)back ? user->spent - (int64_t)back : 0;
	user->seen_ns = now_ns;
}

/* The user's bucket; a full one that is nobody's any more; or the one of those who have none. */
static struct user_rate_user *user_rate_find(struct user_rate *rate, uint32_t uid, uint64_t now_ns)
{
	struct user_rate_user *full = NULL;

	for (uint32_t i = 0; i < USER_RATE_USERS_MAX; i++) {
		struct user_rate_user *user = &rate->users[i];

		user_rate_refill(rate, user, now_ns);
		if (user->uid == uid && user->seen_ns > 0)
			return user;
		if (!full && user->spent == 0 && user->untold == 0)
			full = user;
	}
	if (!full) {
		full = &rate->users[USER_RATE_USERS_MAX];
		user_rate_refill(rate, full, now_ns);
		return full;
	}
	*full = (struct user_rate_user){.uid = uid, .seen_ns = now_ns};
	return full;
}

bool user_rate_take(struct user_rate *rate, uint32_t uid, uint64_t cost, uint64_t now_ns)
{
	struct user_rate_user *user = user_rate_find(rate, uid, now_ns);

	if (user->spent >= (int64_t)rate->burst) {
		user->untold++;
		rate->refused++;
		return false;
	}
	user->spent += (int64_t)bits_min(cost, UINT64_C(1) << 40);
	return true;
}

uint64_t user_rate_tell(struct user_rate *rate, uint32_t uid, uint64_t now_ns)
{
	struct user_rate_user *user = user_rate_find(rate, uid, now_ns);
	uint64_t untold = user->untold;

	if (untold == 0 || (user->told_ns && now_ns - user->told_ns < USER_RATE_PERIOD_NS))
		return 0;
	user->told_ns = now_ns;
	user->untold = 0;
	return untold;
}
