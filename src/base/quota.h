/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares of users in something that they all use, so that one user's load costs no other user
 * anything. There are two kinds:
 *
 *	an amount (struct quota) is taken and given back: connections, bytes that wait;
 *	a rate (struct quota_rate) is used up and comes back with time: log lines, processor time.
 *
 * What happens to a refused user is the caller's choice: an error, a wait, or the loss of the oldest entry
 * of the user who has the most. docs/limits.md lists all limits.
 *
 * Not thread-safe. A key is whatever separates users: mostly a uid.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The rule for what is shared without a fixed limit for each user: as much as is then left for all
 * others. So one user alone gets half, as in the kernel module, the next one half of the rest, and so
 * on: however many users take all they can, there is something left for the next one.
 *
 * How much more a user may take who has @own, of @total, of which all users together have @used.
 */
static inline uint64_t quota_rest(uint64_t total, uint64_t used, uint64_t own)
{
	uint64_t rest = total > used ? total - used : 0;

	return rest > own ? (rest - own) / 2 : 0;
}

/* By name; src/base/quota.def has them all. */
enum quota_id {
	QUOTA_UNCOUNTED,
#define QUOTA(name, ...) QUOTA_##name,
#include "base/quota.def"
	QUOTA_IDS,
};

/* The counter in /metrics. Both are NULL if there is none. */
struct quota_metric {
	const char *name, *help; /* the name without "_total" */
};

const struct quota_metric *quota_metric(enum quota_id id);

/*
 * Refusals are counted for the whole process, so that a new limit needs no way of its own to /metrics: only the
 * daemon's quotas have an id. Any thread may call these.
 */
void quota_count(enum quota_id id, uint64_t count);
uint64_t quota_counted(enum quota_id id);

struct quota_user {
	uint64_t key;
	uint64_t used; /* never 0 */
};

/* All zero but for the limits: a new one. */
struct quota {
	enum quota_id id;   /* under which refusals are counted */
	uint64_t total;     /* of all users together */
	uint64_t each;      /* of one user; 0 = by the rule above */
	uint64_t users_max; /* who have something at a time; 0 = any number */

	uint64_t used;
	uint64_t refused; /* times that a user had no room */

	/* Private. */
	struct quota_user *users; /* who have something, by key */
	size_t count, capacity;
	uint64_t turn; /* the key of the user who had the last one */
};

/* Afterwards nobody has anything; the limits stay. */
void quota_deinit(struct quota *quota);

/* What a user has, and how much more that user may take. */
uint64_t quota_used(const struct quota *quota, uint64_t key);
uint64_t quota_room(const struct quota *quota, uint64_t key);

/* Takes @amount if there is room for it. False: there is not, or no memory; it is counted. */
bool quota_take(struct quota *quota, uint64_t key, uint64_t amount);

/*
 * The same for what the user had before a restart, when others may have had less: only the total counts,
 * so that nobody loses what there was room for.
 */
bool quota_restore(struct quota *quota, uint64_t key, uint64_t amount);

/* Takes @amount, whether there is room or not. 0 or -ENOMEM. */
int quota_add(struct quota *quota, uint64_t key, uint64_t amount);

/* Gives back @amount, or what is left of it. */
void quota_give(struct quota *quota, uint64_t key, uint64_t amount);

/* The most that any user has. */
uint64_t quota_most(const struct quota *quota);

/*
 * Users take turns in a circle, in the order of their keys: the next turn is of the user with the lowest
 * number. So nobody gets ahead by having nothing in between.
 */
uint64_t quota_turn(const struct quota *quota, uint64_t key);
void quota_had_turn(struct quota *quota, uint64_t key);

#define QUOTA_RATE_USERS_MAX 64u                   /* further users at a time share one */
#define QUOTA_RATE_REPORT_NS UINT64_C(60000000000) /* between two reports about one user */

struct quota_rate_user {
	uint64_t key;
	uint64_t used;    /* of the burst; more than it = debt */
	uint64_t seen_ns; /* when that was so; 0 = nobody's */
	uint64_t reported_ns;
	uint64_t unreported; /* refused since then */
};

/*
 * A user who has anything left of the burst may take any amount, also more than that, and then has to
 * wait until the debt is paid. All zero but for burst and per_second: a new one.
 */
struct quota_rate {
	enum quota_id id;
	uint64_t burst;
	uint64_t per_second;
	uint64_t refused; /* times, in total */
	struct quota_rate_user users[QUOTA_RATE_USERS_MAX + 1];
};

/* Whether a user has more than @reserve left of the burst. */
bool quota_rate_has(struct quota_rate *rate, uint64_t key, uint64_t reserve, uint64_t now_ns);

/* Takes @amount from a user, who may have less. */
void quota_rate_pay(struct quota_rate *rate, uint64_t key, uint64_t amount, uint64_t now_ns);

/* Takes @amount if the user has anything left; else counts. */
bool quota_rate_take(struct quota_rate *rate, uint64_t key, uint64_t amount, uint64_t now_ns);

/* How often that user was refused, if it is time to report that; else 0. */
uint64_t quota_rate_report(struct quota_rate *rate, uint64_t key, uint64_t now_ns);
