/* SPDX-License-Identifier: Apache-2.0 */

/* Users by key: one who chooses keys gains nothing. Rates are brought up to date when they are used. */

#include "base/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"

static uint64_t quota_counts[QUOTA_IDS]; /* atomic */

const struct quota_metric *quota_metric(enum quota_id id)
{
	static const struct quota_metric metrics[QUOTA_IDS] = {
#define QUOTA(name, metric, help, ...) [QUOTA_##name] = {metric, help},
#include "base/quota.def"
	};

	return &metrics[id];
}

void quota_count(enum quota_id id, uint64_t count)
{
	if (id != QUOTA_UNCOUNTED)
		__atomic_add_fetch(&quota_counts[id], count, __ATOMIC_RELAXED);
}

uint64_t quota_counted(enum quota_id id)
{
	return __atomic_load_n(&quota_counts[id], __ATOMIC_RELAXED);
}

void quota_deinit(struct quota *quota)
{
	free(quota->users);
	*quota = (struct quota){.id = quota->id,
				.total = quota->total,
				.each = quota->each,
				.users_max = quota->users_max};
}

/* The place of a user, or where it belongs. */
static size_t quota_place(const struct quota *quota, uint64_t key)
{
	size_t low = 0, high = quota->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (quota->users[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* NULL: the user has nothing. */
static struct quota_user *quota_find(const struct quota *quota, uint64_t key)
{
	size_t place = quota_place(quota, key);

	return place < quota->count && quota->users[place].key == key ? &quota->users[place] : NULL;
}

uint64_t quota_used(const struct quota *quota, uint64_t key)
{
	const struct quota_user *user = quota_find(quota, key);

	return user ? user->used : 0;
}

uint64_t quota_room(const struct quota *quota, uint64_t key)
{
	const struct quota_user *user = quota_find(quota, key);
	uint64_t own = user ? user->used : 0;

	if (!user && quota->users_max && quota->count >= quota->users_max)
		return 0;
	if (!quota->each)
		return quota_rest(quota->total, quota->used, own);
	return bits_min(quota->each - bits_min(own, quota->each),
			quota->total - bits_min(quota->used, quota->total));
}

static bool quota_take_of(struct quota *quota, uint64_t key, uint64_t amount, uint64_t room)
{
	if (amount <= room && quota_add(quota, key, amount) == 0)
		return true;
	quota->refused++;
	quota_count(quota->id, 1);
	return false;
}

bool quota_take(struct quota *quota, uint64_t key, uint64_t amount)
{
	return quota_take_of(quota, key, amount, quota_room(quota, key));
}

bool quota_restore(struct quota *quota, uint64_t key, uint64_t amount)
{
	return quota_take_of(quota, key, amount,
			     quota->total - bits_min(quota->used, quota->total));
}

int quota_add(struct quota *quota, uint64_t key, uint64_t amount)
{
	size_t place = quota_place(quota, key);
	struct quota_user *users;

	if (amount == 0)
		return 0;
	if (place == quota->count || quota->users[place].key != key) {
		users = array_grow(quota->users, &quota->capacity, quota->count + 1,
				   sizeof(*users));
		if (!users)
			return -ENOMEM;
		quota->users = users;
		memmove(&users[place + 1], &users[place],
			(quota->count++ - place) * sizeof(*users));
		users[place] = (struct quota_user){.key = key};
	}
	quota->users[place].used += amount;
	quota->used += amount;
	return 0;
}

void quota_give(struct quota *quota, uint64_t key, uint64_t amount)
{
	struct quota_user *user = quota_find(quota, key);

	if (!user)
		return;
	amount = bits_min(amount, user->used);
	quota->used -= amount;
	user->used -= amount;
	if (user->used > 0)
		return;
	quota->count--;
	memmove(user, user + 1, (size_t)(&quota->users[quota->count] - user) * sizeof(*user));
}

uint64_t quota_most(const struct quota *quota)
{
	uint64_t most = 0;

	for (size_t i = 0; i < quota->count; i++)
		most = bits_max(most, quota->users[i].used);
	return most;
}

uint64_t quota_turn(const struct quota *quota, uint64_t key)
{
	return key - quota->turn - 1;
}

void quota_had_turn(struct quota *quota, uint64_t key)
{
	quota->turn = key;
}

static void quota_rate_refill(const struct quota_rate *rate, struct quota_rate_user *user,
			      uint64_t now_ns)
{
	uint64_t passed = now_ns - bits_min(user->seen_ns, now_ns);
	/* Two days fit; nobody's debt lasts that long. */
	uint64_t back =
		bits_min(passed, UINT64_C(172800) * NS_PER_S) / NS_PER_MS * rate->per_second / 1000;

	if (back == 0)
		return; /* so that small steps add up */
	user->used -= bits_min(user->used, back);
	user->seen_ns = now_ns;
}

/* The user's own; a full one that is nobody's any more; or the one of those who have none. */
static struct quota_rate_user *quota_rate_find(struct quota_rate *rate, uint64_t key,
					       uint64_t now_ns)
{
	struct quota_rate_user *full = NULL;

	for (size_t i = 0; i < QUOTA_RATE_USERS_MAX; i++) {
		struct quota_rate_user *user = &rate->users[i];

		quota_rate_refill(rate, user, now_ns);
		if (user->key == key && user->seen_ns > 0)
			return user;
		if (!full && user->used == 0 && user->unreported == 0)
			full = user;
	}
	if (!full) {
		full = &rate->users[QUOTA_RATE_USERS_MAX];
		quota_rate_refill(rate, full, now_ns);
		return full;
	}
	*full = (struct quota_rate_user){.key = key, .seen_ns = now_ns};
	return full;
}

bool quota_rate_has(struct quota_rate *rate, uint64_t key, uint64_t reserve, uint64_t now_ns)
{
	uint64_t used = quota_rate_find(rate, key, now_ns)->used;

	return used < rate->burst && rate->burst - used > reserve;
}

void quota_rate_pay(struct quota_rate *rate, uint64_t key, uint64_t amount, uint64_t now_ns)
{
	quota_rate_find(rate, key, now_ns)->used += bits_min(amount, UINT64_C(1) << 40);
}

bool quota_rate_take(struct quota_rate *rate, uint64_t key, uint64_t amount, uint64_t now_ns)
{
	if (quota_rate_has(rate, key, 0, now_ns)) {
		quota_rate_pay(rate, key, amount, now_ns);
		return true;
	}
	quota_rate_find(rate, key, now_ns)->unreported++;
	rate->refused++;
	quota_count(rate->id, 1);
	return false;
}

uint64_t quota_rate_report(struct quota_rate *rate, uint64_t key, uint64_t now_ns)
{
	struct quota_rate_user *user = quota_rate_find(rate, key, now_ns);
	uint64_t unreported = user->unreported;

	if (unreported == 0 ||
	    (user->reported_ns && now_ns - user->reported_ns < QUOTA_RATE_REPORT_NS))
		return 0;
	user->reported_ns = now_ns;
	user->unreported = 0;
	return unreported;
}
