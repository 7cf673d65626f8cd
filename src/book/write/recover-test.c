/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread leaves an event without returning from it, at any instruction, or only seems to. Where memory is
 * reserved the writer calls the test with the device's lock held: from there the thread jumps, ends, or stays
 * in a signal handler.
 */

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"

#define RTEST_STACK (64u << 10)
#define RTEST_THREAD_STACK (256u << 10) /* aarch64 needs more than 64 KiB */
#define RTEST_CROWD 1000u

enum rtest_way {
	RTEST_JUMPS = 0,
	RTEST_ENDS = 1,
	RTEST_WAITS = 2,    /* in a signal handler */
	RTEST_SWITCHES = 3, /* to a fiber that waits */
};

struct rtest {
	struct testing_book book;
	int (*reserve)(void *context, uint64_t offset, uint64_t length);
	enum rtest_way way;
	bool armed;
	uint64_t done; /* events that the thread has completed */
	sigjmp_buf back;
	sem_t is_there; /* the thread has left, or waits */
	sem_t go_on;
	ucontext_t outside, fiber;
};

static struct rtest rtest;

static void rtest_wait(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

static void rtest_handler(int number)
{
	if (rtest.way == RTEST_JUMPS)
		siglongjmp(rtest.back, 1);
	sem_post(&rtest.is_there);
	rtest_wait(&rtest.go_on);
}

static void rtest_fiber(void)
{
	sem_post(&rtest.is_there);
	rtest_wait(&rtest.go_on);
}

static int rtest_reserve(void *context, uint64_t offset, uint64_t length)
{
	if (__atomic_exchange_n(&rtest.armed, false, __ATOMIC_RELAXED)) {
		if (rtest.way == RTEST_ENDS)
			pthread_exit(NULL);
		else if (rtest.way == RTEST_SWITCHES)
			assert(swapcontext(&rtest.outside, &rtest.fiber) == 0);
		else
			assert(raise(SIGUSR1) == 0);
	}
	return rtest.reserve(context, offset, length);
}

/* Not inlined: the frame of the call ends with the call. */
static __attribute__((noinline)) void rtest_alloc(uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(1, address, 8);

	buffer.thread = (uint32_t)gettid();
	writer_alloc(rtest.book.writer, device, &buffer, 0);
}

static __attribute__((noinline)) void rtest_free(uint32_t device, uint64_t address)
{
	struct shard_buffer who = testing_buffer(1, address, 8);

	who.thread = (uint32_t)gettid();
	writer_free_buffer(rtest.book.writer, device, &who);
}

static struct view *rtest_view(void)
{
	static struct view view;

	assert(view_read(&view, &rtest.book.reader, 0, VIEW_DEAD) == 0);
	assert(view.rows_exact && view.adds_up);
	return &view;
}

static struct book_rejected rtest_rejected(void)
{
	assert(reader_refresh(&rtest.book.reader) == 0);
	return rtest.book.reader.header.rejected;
}

static void rtest_open(enum rtest_way way)
{
	testing_book_open(&rtest.book);
	rtest.book.writer->home = (uint32_t)getpid();
	rtest.reserve = rtest.book.writer->reserve;
	rtest.book.writer->reserve = rtest_reserve;
	rtest.way = way;
	rtest.done = 0;
	assert(sem_init(&rtest.is_there, 0, 0) == 0 && sem_init(&rtest.go_on, 0, 0) == 0);
}

/* As a program that goes on after the jump uses its stack. */
static __attribute__((noinline)) void rtest_use_stack(void)
{
	volatile char used[RTEST_STACK / 4];

	for (size_t i = 0; i < sizeof(used); i++)
		used[i] = 1;
}

/* Allocates until memory is reserved, and then does as the test says. @alternate: NULL = none. */
static void rtest_run(void *alternate)
{
	const struct sigaction action = {.sa_handler = rtest_handler,
					 .sa_flags = alternate ? SA_ONSTACK : 0};
	const stack_t stack = {.ss_sp = alternate, .ss_size = RTEST_STACK};

	assert(!alternate || sigaltstack(&stack, NULL) == 0);
	assert(sigaction(SIGUSR1, &action, NULL) == 0);
	if (sigsetjmp(rtest.back, 1) == 0) {
		rtest_alloc(0, rtest.done++);
		rtest.armed = true;
		while (rtest.armed) {
			rtest_alloc(0, rtest.done);
			rtest.done++;
		}
		return;
	}
	rtest_use_stack();
	sem_post(&rtest.is_there);
	rtest_wait(&rtest.go_on);
}

static void *rtest_leaves(void *unused)
{
	rtest_run(NULL);
	return NULL;
}

/* The stack of handlers or of the fiber is part of an older frame: its stack pointers are above. */
static __attribute__((noinline)) void *rtest_goes_elsewhere(void *unused)
{
	_Alignas(16) char elsewhere[RTEST_STACK];

	if (rtest.way == RTEST_SWITCHES) {
		assert(getcontext(&rtest.fiber) == 0);
		rtest.fiber.uc_stack.ss_sp = elsewhere;
		rtest.fiber.uc_stack.ss_size = sizeof(elsewhere);
		rtest.fiber.uc_link = &rtest.outside;
		makecontext(&rtest.fiber, rtest_fiber, 0);
		rtest_run(NULL);
	} else {
		rtest_run(elsewhere);
	}
	return NULL;
}

/* A thread has left event @left; others go on, lose nothing, and the device's figures are bounds. */
static void rtest_goes_on(uint64_t left)
{
	for (uint64_t i = 0; i < 100; i++)
		rtest_alloc(0, 1000000 + i);
	assert(rtest_view()->live == left + 100);
	assert(rtest_view()->hot[1].allocs == left + 100);
	assert(rtest_view()->inexact ==
	       (BOOK_INEXACT_LOW | BOOK_INEXACT_HIGH) * ((1u << BOOK_TYPES) - 1));
	assert(rtest_rejected().lock == 1); /* the event that was left */
	for (uint64_t i = 0; i < left; i++)
		rtest_free(0, i);
	assert(rtest_view()->live == 100 && rtest_view()->cold[1].unknown_frees == 0);
}

static void rtest_needs_frames(void)
{
#ifdef __SANITIZE_ADDRESS__
	unit_skip("ASan keeps the variables of a frame elsewhere");
#endif
}

UNIT(a_thread_jumps_out_of_an_event)
{
	pthread_t thread;

	rtest_needs_frames();
	rtest_open(RTEST_JUMPS);
	assert(pthread_create(&thread, NULL, rtest_leaves, NULL) == 0);
	rtest_wait(&rtest.is_there);
	rtest_goes_on(rtest.done);
	sem_post(&rtest.go_on);
	assert(pthread_join(thread, NULL) == 0);
	testing_book_deinit(&rtest.book);
}

UNIT(a_thread_ends_inside_an_event)
{
	pthread_t thread;

	rtest_open(RTEST_ENDS);
	assert(pthread_create(&thread, NULL, rtest_leaves, NULL) == 0);
	assert(pthread_join(thread, NULL) == 0);
	rtest_goes_on(rtest.done);
	testing_book_deinit(&rtest.book);
}

/* Nobody takes the lock from a thread that will be back, however long it takes. */
static void rtest_waits(enum rtest_way way, void *(*run)(void *))
{
	pthread_t thread;

	rtest_open(way);
	assert(pthread_create(&thread, NULL, run, NULL) == 0);
	rtest_wait(&rtest.is_there);
	for (uint64_t i = 0; i < 100; i++)
		rtest_alloc(0, 1000000 + i);
	assert(rtest_rejected().lock == 100);
	sem_post(&rtest.go_on);
	assert(pthread_join(thread, NULL) == 0);
	assert(rtest_view()->live == rtest.done && rtest_view()->hot[1].allocs == rtest.done);
	assert(rtest_view()->inexact == BOOK_INEXACT_LOW << 1);
	rtest_alloc(0, 2000000);
	assert(rtest_view()->live == rtest.done + 1);
	testing_book_deinit(&rtest.book);
}

UNIT(a_thread_in_a_signal_handler_keeps_its_lock)
{
	rtest_waits(RTEST_WAITS, rtest_leaves);
}

UNIT(a_thread_on_an_alternate_stack_keeps_its_lock)
{
	rtest_needs_frames();
	rtest_waits(RTEST_WAITS, rtest_goes_elsewhere);
}

UNIT(a_thread_in_another_fiber_keeps_its_lock)
{
	rtest_waits(RTEST_SWITCHES, rtest_goes_elsewhere);
}

static void *rtest_one_of_many(void *number)
{
	rtest_alloc(0, 1000000 + (uintptr_t)number);
	return NULL;
}

UNIT(a_thousand_threads_wait_for_one_that_has_left)
{
	uint32_t count = testing_quick() ? RTEST_CROWD / 10 : RTEST_CROWD;
	pthread_t left, threads[RTEST_CROWD];
	pthread_attr_t small;

	rtest_needs_frames();
	rtest_open(RTEST_JUMPS);
	assert(pthread_attr_init(&small) == 0);
	assert(pthread_attr_setstacksize(&small, RTEST_THREAD_STACK) == 0);
	assert(pthread_create(&left, NULL, rtest_leaves, NULL) == 0);
	rtest_wait(&rtest.is_there);
	for (uintptr_t i = 0; i < count; i++)
		assert(pthread_create(&threads[i], &small, rtest_one_of_many, (void *)i) == 0);
	for (uint32_t i = 0; i < count; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	assert(rtest_view()->live == rtest.done + count && rtest_rejected().lock == 1);
	sem_post(&rtest.go_on);
	assert(pthread_join(left, NULL) == 0);
	testing_book_deinit(&rtest.book);
}
