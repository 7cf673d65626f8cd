/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What pthreads leaves to its users: threads that take no signals, and waiting up to a deadline. A
 * deadline is a time of CLOCK_MONOTONIC in nanoseconds, so that setting the machine's clock neither
 * shortens nor prolongs a wait; CLOCK_NEVER is none.
 *
 * For a thread that runs jobs there is base/worker.h.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * pthreads_start() - start a thread that blocks all signals
 * @ret_thread: to be joined or detached
 * @name: for people who look at threads; what is longer than 15 bytes is cut. May be NULL.
 *
 * Signals are for the thread that the process began with, which has a loop.
 *
 * Return: 0 or a negative errno.
 */
int pthreads_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context);

/* A mutex, and a condition for pthreads_wait(). Neither can fail on Linux. */
void pthreads_init(pthread_mutex_t *lock, pthread_cond_t *condition);
void pthreads_init_condition(pthread_cond_t *condition);

/*
 * With the lock held. May return early, like every wait for a condition. False: the deadline has
 * passed.
 */
bool pthreads_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns);

/* False: it has not ended by then, and still has to be joined or detached. */
bool pthreads_join(pthread_t thread, uint64_t deadline_ns);
