/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How fast each user may use something: a bucket per user, which refills over time. Whoever has
 * something left may take any amount, also more than that, and then has to wait until the debt is
 * paid. What is refused is counted, and can be reported once per minute and user.
 *
 * More than USER_RATE_USERS_MAX users at a time share one bucket.
 */

#include <stdbool.h>
#include <stdint.h>

#define USER_RATE_USERS_MAX 64u
#define USER_RATE_PERIOD_NS UINT64_C(60000000000) /* between two reports about one user */

struct user_rate_user {
	uint32_t uid;
	int64_t spent;    /* of the burst; more than it = debt */
	uint64_t seen_ns; /* when that was so */
	uint64_t told_ns; /* 0 = never */
	uint64_t untold;  /* refused since then */
};

struct user_rate {
	uint64_t burst;
	uint64_t per_second;
	uint64_t refused; /* in total */
	struct user_rate_user users[USER_RATE_USERS_MAX + 1];
};

/* Whether @uid may; if so, it costs @cost. */
bool user_rate_take(struct user_rate *rate, uint32_t uid, uint64_t cost, uint64_t now_ns);

/* How many of that user's were refused, if it is time to report that; else 0. */
uint64_t user_rate_tell(struct user_rate *rate, uint32_t uid, uint64_t now_ns);
