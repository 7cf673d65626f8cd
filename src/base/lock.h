/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private spin lock that gives up. The application must never hang because a thread was cancelled or
 * frozen in the middle of one of our calls, so taking the lock is bounded: some spinning with
 * exponential back-off, then yielding, then short sleeps, and when nothing has moved for about two
 * seconds failure. The caller then counts the event as unrecorded. From then on nobody waits for that
 * holder again; if it does let go in the end, the lock works as before.
 *
 * A holder that is not run for long is no dead one. So the lock counts how often it was dropped, and who
 * waits begins anew when that number has moved; and only sleeps that were as short as they should be
 * count, because where a waiter is not run in time a holder is not run either.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

enum lock_bits {
	LOCK_HELD = 1,
	LOCK_GIVEN_UP = 2, /* held by somebody who is taken for dead */
	LOCK_TURN = 4,     /* the rest of the word: how often it was dropped */
};

struct lock {
	uint32_t word;
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
	/* Nobody but the holder changes the number. To be given up in between is forgotten, and right so. */
	uint32_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

	__atomic_store_n(&lock->word, (word | (LOCK_TURN - 1)) + 1, __ATOMIC_RELEASE);
}
