/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The contended half of the lock. Looking at the lock after every pause makes two threads on one device
 * eight to ten times slower than one, because the line travels with every look; so the gaps between
 * looks double. Yielding does not help against a waiter of real-time priority, hence the sleeps.
 */

#include "base/lock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define LOCK_SPIN_FIRST 1u  /* pauses before the first look; a pause is 40 to 140 cycles */
#define LOCK_SPIN_LAST 64u  /* longest gap between two looks while spinning */
#define LOCK_SPIN_ROUNDS 24 /* about 40 us of spinning: far longer than any event */
#define LOCK_YIELDS 200
#define LOCK_SLEEPS 2000 /* of 1 ms: then the holder is taken for dead */

static inline void lock_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static bool lock_look(struct lock *lock)
{
	return __atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 && lock_try(lock);
}

bool lock_take_slow(struct lock *lock)
{
	static const struct timespec millisecond = {.tv_nsec = 1000000};
	uint32_t gap = LOCK_SPIN_FIRST;
	int saved_errno;
	bool taken = false;

	for (int round = 0; round < LOCK_SPIN_ROUNDS; round++) {
		for (uint32_t i = 0; i < gap; i++)
			lock_pause();
		if (lock_look(lock))
			return true;
		if (gap < LOCK_SPIN_LAST)
			gap *= 2;
	}
	saved_errno = errno;
	for (int i = 0; i < LOCK_YIELDS && !taken; i++) {
		(void)sched_yield(); /* cannot fail on Linux */
		taken = lock_look(lock);
	}
	for (int i = 0; i < LOCK_SLEEPS && !taken; i++) {
		(void)nanosleep(&millisecond, NULL); /* a signal may shorten it: harmless */
		taken = lock_look(lock);
	}
	errno = saved_errno;
	return taken;
}
