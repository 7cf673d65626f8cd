/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaving a call without returning from it: by a jump out of a signal handler, by cancellation, by
 * a fork in a handler. The thread that does this may lose events, which is counted; no other thread
 * is blocked.
 */

#include <ttmem/ttmem.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/testing/testing-observer.h"

static uint64_t escape_forks;

static sigjmp_buf escape_jump;

static void escape_jumper(int number)
{
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	siglongjmp(escape_jump, 1);
}

UNIT(jump_out_of_a_handler)
{
	volatile int jumps = 0;
	struct observer w;

	observer_track();
	observer_handle(SIGUSR1, escape_jumper, 0);
	while (sigsetjmp(escape_jump, 1))
		jumps++;
	if (jumps < 1000) {
		raise(SIGUSR1);
		abort();
	}
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 1000);
	assert(w.view.hot[TTMEM_DRAM].frees == 1 && w.view.inexact == 0);
	assert(observer_header(&w)->rejected.reentry == 0);
	observer_close(&w);
}

static void escape_jumper_only(int number)
{
	siglongjmp(escape_jump, 1);
}

static bool escape_in_maps; /* a signal is to come when the library has that file open */

/* Instead of libc's. No system call has more arguments, and the kernel ignores those that are too many. */
long syscall(long sysno, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long arguments[6], result;
	va_list list;

	va_start(list, sysno);
	for (size_t i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	result = real(sysno, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		      arguments[5]);
	if (escape_in_maps && sysno == SYS_openat &&
	    strcmp((const char *)arguments[1], "/proc/self/maps") == 0) {
		escape_in_maps = false;
		raise(SIGUSR1);
	}
	return result;
}

/* The runner of the tests checks that no descriptor is left. */
UNIT(jump_out_of_the_first_stack_leaves_no_file_open)
{
	if (OBSERVER_TSAN)
		unit_skip("TSan runs handlers between calls");
	observer_track();
	observer_handle(SIGUSR1, escape_jumper_only, 0);
	if (sigsetjmp(escape_jump, 1) == 0) {
		escape_in_maps = true;
		ttmem_alloc(0, TTMEM_DRAM, 0, 1, NULL);
		abort();
	}
	assert(!escape_in_maps);
}

/*
 * Allocations of L1 on device 0 that were recorded or counted as lost. Whoever is stopped while it makes
 * the device's part of the book leaves no room for it.
 */
static uint64_t escape_accounted(struct observer *w)
{
	const struct book_rejected *rejected = &observer_header(w)->rejected;

	return observer_hot(w, 0, TTMEM_L1).allocs + rejected->lock + rejected->room;
}

static void *escape_after_jump(void *context)
{
	for (uint64_t i = 0; i < 1000; i++)
		ttmem_alloc((uint32_t)i % 2, TTMEM_L1, i, 1, NULL);
	return NULL;
}

/*
 * Jumps out of calls, with the lock of the device taken or not: the thread goes on, and so do others. Each
 * call that was left counts as one event that may be lost, and nothing else is lost.
 */
#define ESCAPE_JUMPS (testing_quick() ? 20 : 200)

static volatile int escape_jumps;

static void escape_count_and_jump(int number)
{
	escape_jumps = escape_jumps + 1;
	siglongjmp(escape_jump, 1);
}

UNIT_LONG(jump_out_of_a_call, 120)
{
	static volatile uint64_t allocs;
	uint64_t events, lost;
	struct observer w;
	pthread_t thread;
	double start;
	timer_t timer;

	if (OBSERVER_TSAN || OBSERVER_ASAN)
		unit_skip("sanitizers run handlers between calls, or move frames");
	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 0, 1, NULL);
	observer_handle(SIGUSR1, escape_count_and_jump, 0);
	timer = observer_timer(SIGUSR1, 0); /* not set yet */
	assert(observer_open(&w, getpid()));
	(void)sigsetjmp(escape_jump, 1);
	if (escape_jumps < ESCAPE_JUMPS) {
		/* Later each time by some nanoseconds: another place in the call. */
		const struct itimerspec once = {.it_value.tv_nsec = 100000 + escape_jumps * 37};

		assert(timer_settime(timer, 0, &once, NULL) == 0);
		for (;;) {
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
			allocs = allocs + 1;
			ttmem_free(0, TTMEM_DRAM, 1);
		}
	}
	assert(timer_delete(timer) == 0);
	observer_handle(SIGUSR1, SIG_IGN, 0);
	ttmem_free(0, TTMEM_DRAM, 1); /* gives back what the last call that was left has held */
	start = observer_now();
	assert(pthread_create(&thread, NULL, escape_after_jump, NULL) == 0);
	assert(pthread_join(thread, NULL) == 0);
	assert(observer_now() - start < 30);
	assert(observer_hot(&w, 1, TTMEM_L1).allocs == 500);
	events = observer_hot(&w, 0, TTMEM_DRAM).allocs;
	lost = observer_header(&w)->rejected.reentry + observer_header(&w)->rejected.lock;
	assert(lost <= 2 * ESCAPE_JUMPS && observer_header(&w)->rejected.lock <= ESCAPE_JUMPS);
	assert(events + lost >= allocs);
	assert(escape_accounted(&w) >= 500 && w.view.adds_up);
	observer_close(&w);
}

static void *escape_cancellable(void *context)
{
	int type;

	assert(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type) == 0);
	for (uint64_t i = 0;; i++) {
		ttmem_alloc(0, TTMEM_DRAM, i % 100, 1, NULL);
		ttmem_free(0, TTMEM_DRAM, i % 100);
	}
	return NULL;
}

/* The same for threads cancelled inside a call; others wait for a dead lock holder only once. */
UNIT(cancelled_in_a_call)
{
	struct observer w;
	pthread_t thread;
	double start;

	if (OBSERVER_TSAN || OBSERVER_ASAN)
		unit_skip("sanitizers do not take asynchronous cancellation");
	observer_track();
	ttmem_alloc(1, TTMEM_DRAM, 0, 1, NULL);
	for (int i = 0; i < 20; i++) {
		assert(pthread_create(&thread, NULL, escape_cancellable, NULL) == 0);
		usleep((useconds_t)(i * 100)); /* some while they make the book */
		assert(pthread_cancel(thread) == 0);
		assert(pthread_join(thread, NULL) == 0);
	}
	start = observer_now();
	for (uint64_t i = 0; i < 10000; i++)
		ttmem_alloc((uint32_t)i % 2, TTMEM_L1, i, 1, NULL);
	assert(observer_now() - start < 30);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 1, TTMEM_L1).buffers == 5000);
	assert(escape_accounted(&w) >= 5000);
	observer_close(&w);
}

static void escape_forker(int number)
{
	int saved_errno = errno;
	pid_t child = fork();

	if (child == 0) {
		/* In the middle of the parent's call there can be no book, and nothing breaks. */
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, "x");
		ttmem_pause();
		ttmem_resume();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	__atomic_fetch_add(&escape_forks, 1, __ATOMIC_RELAXED);
	errno = saved_errno;
}

UNIT(fork_in_a_handler)
{
	static const struct itimerspec once = {.it_value.tv_nsec = 2000000};
	double end = observer_now() + 0.7;
	uint64_t i = 0, forks, seen = 0;
	struct observer w;
	timer_t timer;

	observer_track();
	observer_handle(SIGUSR1, escape_forker, SA_RESTART);
	timer = observer_timer(SIGUSR1, 2000000);
	assert(timer_settime(timer, 0, &once, NULL) == 0);
	for (; observer_now() < end || seen < 5; i++) {
		ttmem_alloc(0, TTMEM_DRAM, i, 1, NULL);
		ttmem_free(0, TTMEM_DRAM, i);
		forks = __atomic_load_n(&escape_forks, __ATOMIC_RELAXED);
		/* Rearmed each time: a periodic timer faster than a fork would leave no time. */
		if (forks != seen)
			assert(timer_settime(timer, 0, &once, NULL) == 0);
		seen = forks;
	}
	assert(timer_delete(timer) == 0);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == i && w.view.live == 0);
	assert(w.view.inexact == 0);
	observer_close(&w);
}
