/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What pthreads lacks: threads that block all signals, and waits with a deadline. A deadline is a
 * CLOCK_MONOTONIC time in nanoseconds, so that setting the system clock neither shortens nor
 * prolongs a wait; CLOCK_NEVER means none.
 *
 * For a thread that runs jobs, see base/threads/worker.h.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * pthreads_start() - start a thread that blocks all signals
 * @ret_thread: must be joined or detached
 * @name: shown in lists of threads; cut to 15 bytes. May be NULL.
 *
 * Signals are left to the main thread, which has a loop.
 *
 * Return: 0 or a negative errno.
 */
int pthreads_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context);

/* A mutex, and a condition for pthreads_wait(). Cannot fail on Linux. */
void pthreads_init(pthread_mutex_t *lock, pthread_cond_t *condition);
void pthreads_init_condition(pthread_cond_t *condition);

/*
 * Call with the lock held. May wake up early, like every condition wait. False: the deadline has
 * passed.
 */
bool pthreads_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns);

/* False: the thread has not ended by then, and still has to be joined or detached. */
bool pthreads_join(pthread_t thread, uint64_t deadline_ns);
