/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The contended path of the lock.
 *
 * What costs is not waiting but handing over: all that the holder has touched lately (ring, records,
 * index, counters of a device) moves to the other core, a line at a time. So a thread that finds the
 * lock in the hands of one that takes it again and again (the count of turns runs) leaves it alone
 * until that one has had it often enough, and then keeps it for as long. How often depends neither on
 * the number of threads that wait nor on the machine. A lock that is merely held at the moment, or
 * that goes from thread to thread by itself, is looked at with gaps that double.
 *
 * Yielding does not help against a waiter of real-time priority, hence the sleeps.
 */

#include "base/threads/lock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/process/freeze.h"
#include "base/threads/lock-left.h"

#define LOCK_SPIN_FIRST 8u /* pauses before the first look; a pause is 40 to 140 cycles */
#define LOCK_SPIN_LAST 1024u
#define LOCK_SPIN_ROUNDS 10 /* about 100 us of spinning: far longer than any event */
#define LOCK_YIELDS 200
#define LOCK_YIELDS_OF_A_TENURE 10 /* so that spinning for others' turns ends after some 40 ms */

/* Turns that a thread which does nothing else gets before another takes over: see above. */
#define LOCK_TENURE 8192u
#define LOCK_TENURE_GAP 512u /* pauses between two looks at such a lock: 13 to 30 us */
#define LOCK_TENURE_ROUNDS 64
/* Close together, because such a holder is outside the lock half of the time. */
#define LOCK_LOOKS 8

#define LOCK_NAP_FIRST_NS 1000000u
/* With sleeps of 1 ms a thousand waiters keep two cores busy, and the holder off both. */
#define LOCK_NAP_LAST_NS 16000000u
#define LOCK_NAPS_OF_A_KIND 4 /* before they double */
#define LOCK_CALM_NS \
	UINT64_C(2000000000) /* of sleeps without a change: then the holder counts as dead */
#define LOCK_STILL_NS UINT64_C(20000000000) /* likewise, however long the sleeps took */
#define LOCK_NAPS_MAX 20000 /* five minutes of losing to other threads: never hang */

#define LOCK_LOOKS_CALM 30000u   /* one to five seconds, each after LOCK_SPIN_LAST pauses */
#define LOCK_LOOKS_MAX 10000000u /* five minutes */

/*
 * For each lock the word when it was taken from a thread that kept it. Only a hint: locks may share one. Not
 * in the lock, which is in a line that every event touches.
 */
#define LOCK_HINT_BITS 6
static uint32_t lock_hints[1u << LOCK_HINT_BITS];

static uint32_t *lock_since(const struct lock *lock)
{
	return &lock_hints[(uintptr_t)lock * HASH_K0 >> (64 - LOCK_HINT_BITS)];
}

static inline void lock_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static uint32_t lock_see(const struct lock *lock)
{
	return __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
}

static bool lock_look(struct lock *lock)
{
	return !(lock_see(lock) & LOCK_HELD) && lock_try(lock);
}

static bool lock_look_closely(struct lock *lock)
{
	for (int i = 0; i < LOCK_LOOKS; i++) {
		if (lock_look(lock))
			return true;
		lock_pause();
	}
	return false;
}

static void lock_pauses(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		lock_pause();
}

static uint32_t lock_turns(uint32_t from, uint32_t to)
{
	const uint32_t count = ~(uint32_t)(LOCK_TURN - 1);

	return ((to & count) - (from & count)) / LOCK_TURN;
}

/*
 * Whether somebody keeps taking the lock: between two looks so close together it can hardly have
 * gone to another core and back.
 */
static bool lock_is_kept(uint32_t from, uint32_t to)
{
	return lock_turns(from, to) > 1;
}

/* Whether whoever keeps the lock has not had it often enough yet. */
static bool lock_is_early(const struct lock *lock, uint32_t word)
{
	return lock_turns(__atomic_load_n(lock_since(lock), __ATOMIC_RELAXED), word) < LOCK_TENURE;
}

/* Takes the lock from one that keeps it. */
static bool lock_take_over(struct lock *lock)
{
	if (!lock_look_closely(lock))
		return false;
	__atomic_store_n(lock_since(lock), lock_see(lock), __ATOMIC_RELAXED);
	return true;
}

/* Not nanosleep(): that is a place where a cancelled thread ends, with other locks in its hands. */
static void lock_sleep(uint32_t ns)
{
	const struct timespec time = {.tv_nsec = ns};

	/* A signal may shorten it, which is harmless. */
	(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

/* How long nothing has changed. */
struct lock_patience {
	uint32_t word; /* as last seen */
	uint64_t since_ns;
	uint64_t calm_ns;
};

/* After a sleep that should have taken @nap_ns. True: the holder of the lock counts as dead. */
static bool lock_is_enough(struct lock_patience *patience, uint32_t word, uint32_t nap_ns,
			   uint64_t from_ns)
{
	uint64_t now = clock_ns_kernel(CLOCK_MONOTONIC);

	if (word != patience->word) {
		*patience = (struct lock_patience){.word = word, .since_ns = now};
		return false;
	}
	if (now - from_ns < 2 * (uint64_t)nap_ns)
		patience->calm_ns += now - from_ns;
	return patience->calm_ns >= LOCK_CALM_NS || now - patience->since_ns >= LOCK_STILL_NS;
}

/* Takes the lock from a holder that has left. */
static bool lock_inherit(struct lock *lock, uint32_t home)
{
	uint64_t left = lock_is_left(lock, home);

	return left && lock_take_from(lock, left);
}

/* Sleeps until it has the lock, or until the holder counts as dead, here or in another waiter. */
static enum lock_outcome lock_outwait(struct lock *lock, uint32_t home)
{
	struct lock_patience patience = {.word = lock_see(lock),
					 .since_ns = clock_ns_kernel(CLOCK_MONOTONIC)};
	uint32_t nap = LOCK_NAP_FIRST_NS, word;

	for (int i = 1; i <= LOCK_NAPS_MAX; i++) {
		uint64_t from = clock_ns_kernel(CLOCK_MONOTONIC);

		lock_sleep(nap);
		if (lock_take_over(lock))
			return LOCK_TAKEN;
		word = lock_see(lock);
		if (word == patience.word && lock_inherit(lock, home))
			return LOCK_TAKEN_OVER;
		if (word & LOCK_GIVEN_UP)
			return LOCK_FAILED;
		if (lock_is_enough(&patience, word, nap, from)) {
			/* Unless it changes right now. */
			(void)__atomic_compare_exchange_n(&lock->word, &word, word | LOCK_GIVEN_UP,
							  false, __ATOMIC_RELAXED,
							  __ATOMIC_RELAXED);
			return LOCK_FAILED;
		}
		if (i % LOCK_NAPS_OF_A_KIND == 0 && nap < LOCK_NAP_LAST_NS)
			nap *= 2;
	}
	return LOCK_FAILED;
}

/* Without system calls, as freeze.h demands: what counts instead of time is how often it has looked. */
static bool lock_outspin(struct lock *lock)
{
	uint32_t seen = lock_see(lock), calm = 0;

	for (uint32_t looks = 0; looks < LOCK_LOOKS_MAX && calm < LOCK_LOOKS_CALM; looks++) {
		uint32_t word;

		for (uint32_t i = 0; i < LOCK_SPIN_LAST; i++)
			lock_pause();
		if (lock_look(lock))
			return true;
		word = lock_see(lock);
		if (word & LOCK_GIVEN_UP)
			return false;
		calm = word == seen ? calm + 1 : 0;
		seen = word;
	}
	if (calm >= LOCK_LOOKS_CALM)
		(void)__atomic_compare_exchange_n(&lock->word, &seen, seen | LOCK_GIVEN_UP, false,
						  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return false;
}

/* Waits while somebody keeps the lock; true if it was taken in the end. */
static bool lock_outlast(struct lock *lock)
{
	uint32_t before = lock_see(lock), now;

	for (int i = 0; i < LOCK_TENURE_ROUNDS; i++) {
		lock_pauses(LOCK_TENURE_GAP);
		now = lock_see(lock);
		if (!lock_is_kept(before, now))
			return lock_look(lock);
		if (!lock_is_early(lock, now) && lock_take_over(lock))
			return true;
		before = now;
	}
	return false;
}

/* Without a system call. */
static bool lock_spin(struct lock *lock)
{
	uint32_t before = lock_see(lock), now;
	uint32_t gap = LOCK_SPIN_FIRST;

	for (int round = 0; round < LOCK_SPIN_ROUNDS; round++) {
		lock_pauses(gap);
		now = lock_see(lock);
		if (lock_is_kept(before, now) ? lock_outlast(lock) : lock_look(lock))
			return true;
		before = lock_see(lock);
		if (gap < LOCK_SPIN_LAST)
			gap *= 2;
	}
	return false;
}

/*
 * Lets others run, one of which may hold the lock. If it is kept by one that runs elsewhere, that one
 * is left alone as before: many waiters that look after every yield would end its turns early.
 */
static bool lock_outyield(struct lock *lock)
{
	for (int i = 0; i < LOCK_YIELDS;) {
		uint32_t before = lock_see(lock);

		(void)sched_yield(); /* cannot fail on Linux */
		if (lock_is_kept(before, lock_see(lock))) {
			if (lock_outlast(lock))
				return true;
			i += LOCK_YIELDS_OF_A_TENURE;
		} else {
			if (lock_look(lock))
				return true;
			i++;
		}
	}
	return false;
}

enum lock_outcome lock_take_slow(struct lock *lock, uint32_t home)
{
	enum lock_outcome outcome;
	int saved_errno;

	/* Nobody waits for such a holder, but it may have left since. */
	if (lock_see(lock) & LOCK_GIVEN_UP)
		return !freeze_is_on() && lock_inherit(lock, home) ? LOCK_TAKEN_OVER : LOCK_FAILED;
	if (lock_spin(lock))
		return LOCK_TAKEN;
	if (freeze_is_on())
		return lock_outspin(lock) ? LOCK_TAKEN : LOCK_FAILED;
	saved_errno = errno;
	outcome = lock_outyield(lock) ? LOCK_TAKEN : lock_outwait(lock, home);
	errno = saved_errno;
	return outcome;
}
