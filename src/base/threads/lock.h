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
 *
 * A holder that gives its name can be found out to have left without dropping the lock, for example by
 * siglongjmp() out of a signal handler: see lock-left.h. Then a waiter takes the lock over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

enum lock_bits {
	LOCK_HELD = 1,
	LOCK_GIVEN_UP = 2, /* the holder counts as dead */
	LOCK_TURN = 4,     /* the rest of the word: how often it was dropped */
};

struct lock {
	union {
		struct {
			uint32_t word;
			uint32_t holder; /* thread number; 0 = unnamed, or there is no holder */
		};
		uint64_t both;
	};
	const uint32_t *mark; /* in the holder's frame; NULL = none yet */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "word is the lower half of both");

#define LOCK_NULL         \
	(struct lock)     \
	{                 \
		.both = 0 \
	}

enum lock_outcome {
	LOCK_FAILED = 0,
	LOCK_TAKEN = 1,
	LOCK_TAKEN_OVER = 2, /* the last holder has left its work half done */
};

/*
 * The slow path of lock_take(). @home: the process whose threads name themselves as holders; 0 if none
 * does, and then the lock is never taken over.
 */
enum lock_outcome lock_take_slow(struct lock *lock, uint32_t home);

static inline bool lock_try(struct lock *lock)
{
	/* Acquire pairs with the release in lock_drop(). */
	return (__atomic_fetch_or(&lock->word, LOCK_HELD, __ATOMIC_ACQUIRE) & LOCK_HELD) == 0;
}

static inline bool lock_take(struct lock *lock)
{
	if (likely(lock_try(lock)))
		return true;
	return lock_take_slow(lock, 0) != LOCK_FAILED;
}

/*
 * Both with a name from the first moment: the instruction after taking the lock is where signals arrive most
 * often.
 */
static inline bool lock_try_as(struct lock *lock, uint32_t holder)
{
	uint64_t free = __atomic_load_n(&lock->both, __ATOMIC_RELAXED) & ~(uint64_t)LOCK_HELD;
	uint64_t mine = free | LOCK_HELD | (uint64_t)holder << 32;

	return likely(__atomic_compare_exchange_n(&lock->both, &free, mine, false, __ATOMIC_ACQUIRE,
						  __ATOMIC_RELAXED));
}

/*
 * The holder's mark: in its stack frame, contains the thread number and does not change before the lock is
 * dropped.
 */
static inline void lock_set_mark(struct lock *lock, const uint32_t *mark)
{
	/* Pairs with the load in lock_is_left(): whoever sees the mark sees what is there. */
	__atomic_store_n(&lock->mark, mark, __ATOMIC_RELEASE);
}

/* For a holder that has taken the lock without a name. */
static inline void lock_name_holder(struct lock *lock, const uint32_t *mark)
{
	lock_set_mark(lock, mark);
	/* Pairs with the load of both in lock_is_left(): with the name its mark is seen. */
	__atomic_store_n(&lock->holder, *mark, __ATOMIC_RELEASE);
}

static inline void lock_drop(struct lock *lock)
{
	uint32_t word;

	/* Or the compiler keeps the address of the mark from the beginning of an event to its end. */
	__asm__("" : "+r"(lock));
	/*
	 * Only the holder changes the count. This clears LOCK_GIVEN_UP if it was set meanwhile, and
	 * the holder's name in the same store: a name is never seen with another holder's turn.
	 */
	word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
	/* Nor is a mark: the next holder's may come late. */
	__atomic_store_n(&lock->mark, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->both, (uint64_t)(uint32_t)((word | (LOCK_TURN - 1)) + 1),
			 __ATOMIC_RELEASE);
}
