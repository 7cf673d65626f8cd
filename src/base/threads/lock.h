/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private spin lock that gives up. The application must never hang because a thread was cancelled
 * or stopped in the middle of one of our calls, so taking the lock is bounded: some spinning with
 * exponential back-off, then yielding, then short sleeps, and failure when nothing has changed for
 * about two seconds. The caller then counts the event as unrecorded. From then on nobody waits for
 * that holder again; if it drops the lock after all, the lock works as before.
 *
 * A holder that is not scheduled for long is not dead. So the lock counts how often it was dropped,
 * and a waiter starts over when that count changes; and only sleeps that were as short as they
 * should be count, because where a waiter is not scheduled in time, a holder is not either.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

enum lock_bits {
	LOCK_HELD = 1,
	LOCK_GIVEN_UP = 2, /* the holder counts as dead */
	LOCK_TURN = 4,     /* the rest of the word: how often it was dropped */
};

struct lock {
	uint32_t word;
	uint32_t since; /* a hint for waiters: the word when it was taken from one that kept it */
};

#define LOCK_NULL     \
	(struct lock) \
	{             \
		0     \
	}

/* The slow path of lock_take(): true if the lock was taken in the end. */
bool lock_take_slow(struct lock *lock);

static inline bool lock_try(struct lock *lock)
{
	/* Acquire pairs with the release in lock_drop(). */
	return (__atomic_fetch_or(&lock->word, LOCK_HELD, __ATOMIC_ACQUIRE) & LOCK_HELD) == 0;
}

static inline bool lock_take(struct lock *lock)
{
	if (likely(lock_try(lock)))
		return true;
	return lock_take_slow(lock);
}

static inline void lock_drop(struct lock *lock)
{
	/* Only the holder changes the count. This clears LOCK_GIVEN_UP if it was set meanwhile. */
	uint32_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

	__atomic_store_n(&lock->word, (word | (LOCK_TURN - 1)) + 1, __ATOMIC_RELEASE);
}
