/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The contended half of the lock. Looking at the lock after every pause makes two threads on one device
 * eight to ten times slower than one, because the line travels with every look; so the gaps between
 * looks double. Yielding does not help against a waiter of real-time priority, hence the sleeps.
 */

#include "base/lock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOCK_SPIN_FIRST 1u /* pauses before the first look; a pause is 40 to 140 cycles */
/* Longest gap between two looks, reached only by threads that do nothing else than contend. Where two
 * cores share no cache it costs microseconds to hand a device's lines over, so whoever has them shall
 * get on for a while: with 64 an event of two threads costs nine times one of a single thread, with
 * 256 six, with 1024 four. */
#define LOCK_SPIN_LAST 1024u
#define LOCK_SPIN_ROUNDS 13 /* about 100 us of spinning: far longer than any event */
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

static bool lock_is(const struct lock *lock, enum lock_state state)
{
	return __atomic_load_n(&lock->held, __ATOMIC_RELAXED) == state;
}

static bool lock_look(struct lock *lock)
{
	return lock_is(lock, LOCK_FREE) && lock_try(lock);
}

/* Not nanosleep(): that is a place where a cancelled thread ends, with other locks in its hands. */
static void lock_sleep(void)
{
	static const struct timespec millisecond = {.tv_nsec = 1000000};

	/* A signal may shorten it: harmless. */
	(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &millisecond, NULL);
}

/* Waits by sleeping, until the lock is had or its holder is taken for dead, by us or by another. */
static bool lock_outwait(struct lock *lock)
{
	uint32_t held = LOCK_HELD;

	for (int i = 0; i < LOCK_SLEEPS; i++) {
		if (lock_look(lock))
			return true;
		if (lock_is(lock, LOCK_GIVEN_UP))
			return false;
		lock_sleep();
	}
	if (lock_look(lock))
		return true;
	(void)__atomic_compare_exchange_n(&lock->held, &held, LOCK_GIVEN_UP, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return false;
}

bool lock_take_slow(struct lock *lock)
{
	uint32_t gap = LOCK_SPIN_FIRST;
	int saved_errno;
	bool taken = false;

	if (lock_is(lock, LOCK_GIVEN_UP))
		return false;
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
	taken = taken || lock_outwait(lock);
	errno = saved_errno;
	return taken;
}
