/* SPDX-License-Identifier: Apache-2.0 */

/* Starts, waits for and joins threads. */

#include "base/threads/pthreads.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"

#define PTHREADS_NAME 16u /* the kernel's limit, with the NUL */

int pthreads_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context)
{
	char cut[PTHREADS_NAME];
	sigset_t all, before;
	int r;

	/* A new thread inherits the mask of its creator: no signal can arrive before it is set. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* fails only for a bad argument */
	r = -pthread_create(ret_thread, NULL, run, context);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0 && name) {
		(void)snprintf(cut, sizeof(cut), "%s", name);
		(void)pthread_setname_np(*ret_thread, cut); /* informative only */
	}
	return r;
}

void pthreads_init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes); /* none of these can fail on Linux */
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(condition, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

void pthreads_init(pthread_mutex_t *lock, pthread_cond_t *condition)
{
	(void)pthread_mutex_init(lock, NULL); /* cannot fail on Linux */
	pthreads_init_condition(condition);
}

bool pthreads_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	const struct timespec deadline = clock_timespec(deadline_ns);

	if (deadline_ns == CLOCK_NEVER)
		return pthread_cond_wait(condition, lock) == 0;
	return pthread_cond_timedwait(condition, lock, &deadline) != ETIMEDOUT;
}

/* TSan does not know the first, and reports everything after it as a race. */
#ifndef __SANITIZE_THREAD__
static int pthreads_join_until(pthread_t thread, uint64_t deadline_ns)
{
	const struct timespec deadline = clock_timespec(deadline_ns);

	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &deadline);
}
#else
static int pthreads_join_until(pthread_t thread, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	const struct timespec deadline = clock_timespec(clock_ns(CLOCK_REALTIME) + left_ns);

	return pthread_timedjoin_np(thread, NULL, &deadline);
}
#endif

bool pthreads_join(pthread_t thread, uint64_t deadline_ns)
{
	if (deadline_ns == CLOCK_NEVER)
		return pthread_join(thread, NULL) == 0;
	return pthreads_join_until(thread, deadline_ns) == 0;
}
