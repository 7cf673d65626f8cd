/* SPDX-License-Identifier: Apache-2.0 */

/* Threads block all signals; waits and joins end at their deadline. */

#include "base/threads/pthreads.h"

#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/testing/unit.h"

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t condition;
	bool is_set;
	sem_t gate;
	bool signals_blocked;
};

static void *look(void *context)
{
	struct shared *shared = context;
	sigset_t mask;

	while (sem_wait(&shared->gate) != 0)
		;
	assert(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	shared->signals_blocked =
		sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGPIPE) == 1;
	pthread_mutex_lock(&shared->lock);
	shared->is_set = true;
	pthread_cond_signal(&shared->condition);
	pthread_mutex_unlock(&shared->lock);
	return NULL;
}

static void start(struct shared *shared, pthread_t *ret_thread)
{
	pthreads_init(&shared->lock, &shared->condition);
	assert(sem_init(&shared->gate, 0, 0) == 0);
	assert(pthreads_start(ret_thread, "a name that is too long", look, shared) == 0);
}

UNIT(a_thread_blocks_signals_and_its_maker_does_not)
{
	struct shared shared = {.is_set = false};
	pthread_t thread;
	sigset_t mask;
	char name[32];

	start(&shared, &thread);
	assert(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGTERM) == 0);
	assert(pthread_getname_np(thread, name, sizeof(name)) == 0);
	assert(strcmp(name, "a name that is ") == 0);
	assert(sem_post(&shared.gate) == 0);
	assert(pthreads_join(thread, CLOCK_NEVER));
	assert(shared.signals_blocked && shared.is_set);
}

UNIT(a_thread_that_goes_on_is_not_joined)
{
	struct shared shared = {.is_set = false};
	pthread_t thread;

	start(&shared, &thread);
	assert(!pthreads_join(thread, clock_ns(CLOCK_MONOTONIC)));
	assert(sem_post(&shared.gate) == 0);
	assert(pthreads_join(thread, clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S));
}

UNIT(a_wait_ends_at_its_deadline_or_before)
{
	struct shared shared = {.is_set = false};
	pthread_t thread;

	start(&shared, &thread);
	pthread_mutex_lock(&shared.lock);
	while (pthreads_wait(&shared.condition, &shared.lock, clock_ns(CLOCK_MONOTONIC)))
		;
	assert(!shared.is_set);
	assert(sem_post(&shared.gate) == 0);
	while (!shared.is_set)
		assert(pthreads_wait(&shared.condition, &shared.lock, CLOCK_NEVER));
	pthread_mutex_unlock(&shared.lock);
	assert(pthreads_join(thread, CLOCK_NEVER));
}
