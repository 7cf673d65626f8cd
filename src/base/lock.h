/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private spin lock that gives up. The application must never hang because a thread was cancelled or
 * frozen in the middle of one of our calls, so taking the lock is bounded: some spinning with
 * exponential back-off, then yielding, then short sleeps, and after about two seconds failure. The
 * caller then counts the event as unrecorded.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

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
	/* Acquire pairs with the release in lock_drop(). */
	return __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline bool lock_take(struct lock *lock)
{
	if (likely(lock_try(lock)))
		return true;
	return lock_take_slow(lock);
}

static inline void lock_drop(struct lock *lock)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}
