/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private spin lock that gives up. The application must never hang because a thread was cancelled or
 * frozen in the middle of one of our calls, so taking the lock is bounded: some spinning with
 * exponential back-off, then yielding, then short sleeps, and after about two seconds failure. The
 * caller then counts the event as unrecorded. From then on nobody waits for that holder again; if it
 * does let go in the end, the lock works as before.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

enum lock_state {
	LOCK_FREE = 0,
	LOCK_HELD = 1,
	LOCK_GIVEN_UP = 2, /* held by somebody who is taken for dead */
};

struct lock {
	uint32_t held;
};

#define LOCK_NULL     \
	(struct lock) \
	{             \
		0     \
	}

/* The slow way of lock_take(): true if the lock was had in the end. */
bool lock_take_slow(struct lock *lock);

static inline bool lock_try(struct lock *lock)
{
	uint32_t was = LOCK_FREE;

	/* Acquire pairs with the release in lock_drop(). */
	return __atomic_compare_exchange_n(&lock->held, &was, LOCK_HELD, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline bool lock_take(struct lock *lock)
{
	if (likely(lock_try(lock)))
		return true;
	return lock_take_slow(lock);
}

static inline void lock_drop(struct lock *lock)
{
	__atomic_store_n(&lock->held, LOCK_FREE, __ATOMIC_RELEASE);
}
