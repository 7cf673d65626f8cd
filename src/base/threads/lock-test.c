/* SPDX-License-Identifier: Apache-2.0 */

/* The contended path of the lock: who waits for whom, and for how long. */

#include "base/threads/lock.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/freeze.h"
#include "base/testing/unit.h"
#include "base/threads/lock-left.h"

#define LOCK_THREADS 8u
#define LOCK_ROUNDS 2000u

static double test_now(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

static void test_sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	assert(nanosleep(&time, NULL) == 0);
}

struct test_sum {
	struct lock lock;
	uint64_t sum; /* under the lock */
};

static void *test_add(void *context)
{
	struct test_sum *all = context;

	for (uint32_t i = 0; i < LOCK_ROUNDS; i++) {
		assert(lock_take(&all->lock));
		all->sum++;
		lock_drop(&all->lock);
	}
	return NULL;
}

UNIT(only_one_thread_holds_the_lock)
{
	struct test_sum all = {.lock = LOCK_NULL};
	pthread_t threads[LOCK_THREADS];

	/* The turn counter wraps in the middle of the test. */
	all.lock.word = UINT32_MAX - LOCK_TURN * 1000u - (LOCK_TURN - 1);
	for (uint32_t i = 0; i < LOCK_THREADS; i++)
		assert(pthread_create(&threads[i], NULL, test_add, &all) == 0);
	for (uint32_t i = 0; i < LOCK_THREADS; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	assert(all.sum == LOCK_THREADS * LOCK_ROUNDS);
	assert((all.lock.word & (LOCK_HELD | LOCK_GIVEN_UP)) == 0);
}

/* All waiters wait at the same time, once; if the holder does drop the lock, it works as before. */
UNIT(a_lock_of_a_dead_holder_is_given_up)
{
	struct lock lock = LOCK_NULL;
	double start = test_now();

	assert(lock_take(&lock));
	assert(!lock_take(&lock));
	assert(test_now() - start >= 1.9);
	assert(lock.word & LOCK_GIVEN_UP);
	/* Nobody waits again: that would take longer than a case may. */
	for (int i = 0; i < 1000; i++)
		assert(!lock_take(&lock));
	lock_drop(&lock);
	assert(lock_take(&lock));
	lock_drop(&lock);
	assert((lock.word & (LOCK_HELD | LOCK_GIVEN_UP)) == 0);
}

/* Numbers of threads are those of its process; without a name nothing is known of the holder. */
UNIT(only_a_named_holder_of_the_own_process_is_found_to_have_left)
{
	const uint32_t home = (uint32_t)getpid(), nobody = 1u << 30;
	struct lock lock = LOCK_NULL;
	uint32_t mark = nobody;

	assert(lock_try(&lock));
	lock_set_mark(&lock, &mark);
	assert(lock_is_left(&lock, home) == 0);
	lock_drop(&lock);
	assert(lock_try_as(&lock, nobody));
	lock_set_mark(&lock, &mark);
	assert(lock_is_left(&lock, home) == lock.both); /* no thread has that number */
	assert(lock_is_left(&lock, 0) == 0 && lock_is_left(&lock, home + 1) == 0);
	lock_drop(&lock);
	assert(lock_is_left(&lock, home) == 0);
}

UNIT(a_lock_that_was_given_up_is_taken_over_once_its_holder_has_left)
{
	const uint32_t home = (uint32_t)getpid();
	struct lock lock = LOCK_NULL;
	uint32_t mark = (uint32_t)gettid();

	assert(lock_try_as(&lock, mark));
	lock_set_mark(&lock, &mark);
	assert(lock_take_slow(&lock, home) == LOCK_FAILED);
	assert(lock_take_slow(&lock, home) == LOCK_FAILED);
	mark = 0; /* its frame is gone */
	assert(lock_take_slow(&lock, home) == LOCK_TAKEN_OVER);
	lock_drop(&lock);
}

static void *test_take(void *context)
{
	return lock_take(context) ? context : NULL;
}

/* The lock is never seen free, but it changes hands: a waiter starts over each time. */
UNIT(a_contended_lock_is_not_given_up)
{
	struct lock lock = LOCK_NULL;
	void *taken = NULL;
	pthread_t thread;

	assert(lock_take(&lock));
	assert(pthread_create(&thread, NULL, test_take, &lock) == 0);
	for (int i = 0; i < 35; i++) {
		test_sleep_ms(100);
		/* One holder's drop and the next one's take in one step. */
		(void)__atomic_fetch_add(&lock.word, LOCK_TURN, __ATOMIC_RELEASE);
		assert(!(__atomic_load_n(&lock.word, __ATOMIC_RELAXED) & LOCK_GIVEN_UP));
	}
	lock_drop(&lock);
	assert(pthread_join(thread, &taken) == 0);
	assert(taken == &lock);
}

struct test_keeper {
	struct lock lock;
	bool is_over;
};

static void *test_keep(void *context)
{
	struct test_keeper *keeper = context;

	while (!__atomic_load_n(&keeper->is_over, __ATOMIC_RELAXED)) {
		assert(lock_take(&keeper->lock));
		lock_drop(&keeper->lock);
	}
	return NULL;
}

/* It is left alone for a while, not for ever; and what a waiter remembers of it wraps around. */
UNIT(a_thread_that_keeps_taking_the_lock_gives_way)
{
	struct test_keeper keeper = {.lock = {.word = UINT32_MAX - 3}};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert(pthread_create(&threads[i], NULL, test_keep, &keeper) == 0);
	for (int i = 0; i < 20; i++) {
		assert(lock_take(&keeper.lock));
		lock_drop(&keeper.lock);
	}
	__atomic_store_n(&keeper.is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		assert(pthread_join(threads[i], NULL) == 0);
}

/* A frozen process spins, and gives up on a holder that never comes back. */
UNIT(a_frozen_waiter_makes_no_system_call)
{
	struct lock lock = LOCK_NULL;
	pid_t child;
	int status;

	assert(lock_take(&lock));
	freeze_set();
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		syscall(SYS_exit, lock_take(&lock) ? 1 : 42);
	}
	assert(waitpid(child, &status, 0) == child);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
