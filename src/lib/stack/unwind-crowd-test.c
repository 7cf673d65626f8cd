/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks by unwind tables, taken by many threads, and in children that are forked meanwhile. */

#include <ttmem/ttmem.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

#define UNWIND_THREADS (OBSERVER_TSAN || OBSERVER_ASAN ? 200u : 1000u)
#define UNWIND_BITS 10u

struct unwind_thread {
	pthread_t thread;
	uint32_t number;
	struct calls_expected expected;
};

static pthread_barrier_t unwind_barrier;

/* Each bit of the path selects one of two calls. The code around them keeps them apart. */
/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void unwind_path(uint32_t path, uint32_t left, uint64_t address,
						  struct calls_expected *expected)
{
	if (left == 0) {
		calls_leaf(address, expected);
	} else if (path & 1) {
		__asm__ volatile("# to one");
		unwind_path(path >> 1, left - 1, address, expected);
		__asm__ volatile("# one");
	} else {
		__asm__ volatile("# to none");
		unwind_path(path >> 1, left - 1, address, expected);
		__asm__ volatile("# none");
	}
	calls_expect(expected, __builtin_return_address(0));
}

static void *unwind_thread(void *context)
{
	struct unwind_thread *self = context;
	volatile uint64_t end = 4; /* unknown to the compiler: a loop, not four calls */

	for (uint64_t i = 0; i < end; i++) {
		self->expected.count = 0;
		unwind_path(self->number, UNWIND_BITS, self->number + i * UNWIND_THREADS,
			    &self->expected);
	}
	(void)pthread_barrier_wait(&unwind_barrier); /* no thread ends before all are done */
	return NULL;
}

static void unwind_check_thread(struct observer *w, const struct unwind_thread *thread,
				uint32_t *ret_id)
{
	struct calls_found found;

	*ret_id = 0;
	for (uint64_t i = 0; i < 4; i++) {
		const struct book_record *row =
			observer_row(w, TTMEM_DRAM, thread->number + i * UNWIND_THREADS);

		assert(row && row->stack && (*ret_id == 0 || *ret_id == row->stack));
		*ret_id = row->stack;
	}
	calls_read_id(w, *ret_id, &found);
	calls_check(&found, &thread->expected);
}

static void unwind_check_threads(const char *how)
{
	struct unwind_thread *threads = calloc(UNWIND_THREADS, sizeof(*threads));
	uint32_t *ids = calloc(UNWIND_THREADS, sizeof(*ids));
	pthread_attr_t attributes;
	struct observer w;

	calls_start_tables(how);
	/* Makes the book first: threads that wait too long for it would lose events. */
	assert(ttmem_enabled());
	assert(threads && ids && pthread_attr_init(&attributes) == 0);
	assert(pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
	assert(pthread_barrier_init(&unwind_barrier, NULL, UNWIND_THREADS) == 0);
	for (uint32_t i = 0; i < UNWIND_THREADS; i++) {
		threads[i].number = i;
		assert(pthread_create(&threads[i].thread, &attributes, unwind_thread,
				      &threads[i]) == 0);
	}
	for (uint32_t i = 0; i < UNWIND_THREADS; i++)
		assert(pthread_join(threads[i].thread, NULL) == 0);
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(observer_header(&w)->lost_stacks == 0);
	for (uint32_t i = 0; i < UNWIND_THREADS; i++) {
		unwind_check_thread(&w, &threads[i], &ids[i]);
		for (uint32_t k = 0; k < i; k++)
			assert(ids[k] != ids[i]);
	}
	observer_close(&w);
	(void)pthread_attr_destroy(&attributes); /* cannot fail */
	free(threads);
	free(ids);
}

UNIT(a_thousand_threads_at_once_have_a_stack_each)
{
	unwind_check_threads("unwind");
}

UNIT(a_thousand_threads_at_once_have_a_stack_each_by_auto)
{
	unwind_check_threads("auto");
}

UNIT(a_forked_child_goes_on)
{
	pid_t child;

	calls_start_tables("unwind");
	calls_checked(1);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		calls_checked(2);
		assert(calls_lost() == 0);
		_exit(0);
	}
	observer_wait(child);
}

/* Many functions, so that threads have something new to learn for a while. */
#define UNWIND_ONE(n)                                                          \
	static __attribute__((noinline)) void unwind_one_##n(uint64_t address) \
	{                                                                      \
		ttmem_alloc(1, TTMEM_L1, address, 64, NULL);                   \
		__asm__ volatile("");                                          \
	}
#define UNWIND_NAME(n) unwind_one_##n,
#define UNWIND_4(X, n) X(n##0) X(n##1) X(n##2) X(n##3)
#define UNWIND_16(X, n) UNWIND_4(X, n##0) UNWIND_4(X, n##1) UNWIND_4(X, n##2) UNWIND_4(X, n##3)
#define UNWIND_64(X, n) UNWIND_16(X, n##0) UNWIND_16(X, n##1) UNWIND_16(X, n##2) UNWIND_16(X, n##3)
#define UNWIND_256(X) UNWIND_64(X, 0) UNWIND_64(X, 1) UNWIND_64(X, 2) UNWIND_64(X, 3)

UNWIND_256(UNWIND_ONE)

static void (*const unwind_many[])(uint64_t) = {UNWIND_256(UNWIND_NAME)};

static void *unwind_learner(void *context)
{
	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(unwind_many); i++)
		unwind_many[i](i * 4096);
	return NULL;
}

/* If the parent was in the middle of it the child may have no stack, but no wrong one or hang. */
static void unwind_forked(void)
{
	struct calls_expected expected;
	struct calls_found found;

	calls_outer(3, &expected);
	calls_read(3, &found);
	if (found.count > 0)
		calls_check(&found, &expected);
	assert(calls_lost() == (found.count == 0));
	_exit(0);
}

static void unwind_fork_meanwhile(void)
{
	pid_t children[8];
	pthread_t thread;

	calls_start_tables("unwind");
	assert(pthread_create(&thread, NULL, unwind_learner, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = fork();
		assert(children[i] >= 0);
		if (children[i] == 0)
			unwind_forked();
	}
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		observer_wait(children[i]);
	assert(pthread_join(thread, NULL) == 0);
	_exit(0);
}

UNIT(forking_while_another_thread_learns)
{
	if (OBSERVER_TSAN)
		unit_skip("TSan sees threads in a child that are the parent's");
	calls_need_tables();
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0)
			unwind_fork_meanwhile();
		observer_wait(child);
	}
}
