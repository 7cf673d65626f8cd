/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events inside signal handlers that interrupt events: nothing hangs, nothing crashes, and what cannot
 * be recorded is counted and marked.
 */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/process/thread.h"
#include "lib/testing/testing-observer.h"

/* How often each handler ran, and what it did. */
static uint64_t signal_runs[3];
static uint64_t signal_events;

static void signal_count(uint64_t events)
{
	__atomic_fetch_add(&signal_events, events, __ATOMIC_RELAXED);
}

static uint64_t signal_ran(void)
{
	return __atomic_load_n(&signal_runs[0], __ATOMIC_RELAXED);
}

/* Keys of their own, so that the sum shows whether any was lost. */
static void signal_handler(int number)
{
	uint32_t which = (uint32_t)(number - SIGRTMIN);
	uint64_t run = __atomic_add_fetch(&signal_runs[which], 1, __ATOMIC_RELAXED);
	uint64_t address = UINT64_C(1) << 40 | (uint64_t)which << 32 | run;
	int saved_errno = errno;

	ttmem_alloc(0, TTMEM_L1, address, 16, "known");
	ttmem_free(0, TTMEM_L1, address);
	signal_count(2);
	errno = saved_errno;
}

/* Three timers whose handlers interrupt one another. */
static void signal_storm(timer_t timers[3])
{
	static const long periods[] = {41000, 67000, 97000};

	for (int i = 0; i < 3; i++) {
		observer_handle(SIGRTMIN + i, signal_handler, SA_RESTART);
		timers[i] = observer_timer(SIGRTMIN + i, periods[i] * (OBSERVER_ASAN ? 10 : 1));
	}
}

static void signal_calm(timer_t timers[3])
{
	for (int i = 0; i < 3; i++)
		assert(timer_delete(timers[i]) == 0);
}

/* Every event of a handler was recorded or counted as lost; if none was lost all is exact. */
static void signal_check(void)
{
	struct book_rejected rejected;
	struct book_cold cold;
	struct book_hot hot;
	struct observer w;

	assert(observer_open(&w, getpid()));
	rejected = observer_header(&w)->rejected;
	hot = observer_hot(&w, 0, TTMEM_L1);
	cold = w.view.cold[TTMEM_L1];
	printf("%d runs, %d events, %d turned away\n", (int)signal_runs[0], (int)signal_events,
	       (int)rejected.reentry);
	assert(w.view.adds_up);
	assert(rejected.lock == 0 && rejected.room == 0);
	assert(hot.allocs + hot.frees + cold.unknown_frees + cold.double_frees + rejected.reentry ==
	       signal_events);
	if (rejected.reentry == 0)
		assert(w.view.inexact == 0);
	if (!(w.view.inexact & BOOK_INEXACT_LOW << TTMEM_L1))
		assert(cold.unknown_frees == 0 && cold.double_frees == 0);
	if (w.view.inexact == 0)
		assert(hot.buffers == 0);
	observer_close(&w);
}

UNIT(events_in_signal_handlers_are_exact)
{
	timer_t timers[3];
	double end = observer_now() + 1;
	uint64_t i = 0;
	struct observer w;

	observer_track();
	ttmem_alloc(1, TTMEM_DRAM, 1, 1, "known");
	signal_storm(timers);
	for (; observer_now() < end || signal_ran() < 20; i++) {
		for (uint64_t k = 0; k < 100; k++) {
			ttmem_alloc(0, TTMEM_DRAM, k, 8, "known");
			ttmem_phase_push("phase");
			ttmem_free(0, TTMEM_DRAM, k);
			ttmem_phase_pop();
		}
	}
	signal_calm(timers);
	signal_check();
	/* The interrupted code has lost nothing. */
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 100 * i);
	assert(w.view.hot[TTMEM_DRAM].frees == 100 * i && w.view.hot[TTMEM_DRAM].bytes == 0);
	assert(!(w.view.inexact >> TTMEM_DRAM & 0x101));
	observer_close(&w);
}

/* The table and the strings grow, with system calls that are interrupted. */
UNIT(events_in_signal_handlers_are_exact_while_the_book_grows)
{
	timer_t timers[3];
	char name[32];
	struct observer w;
	uint64_t i;

	observer_track();
	signal_storm(timers);
	for (i = 0; i < 200000; i++) {
		snprintf(name, sizeof(name), "name %d", (int)i);
		ttmem_alloc(0, TTMEM_DRAM, i, 8, name);
	}
	signal_calm(timers);
	signal_check();
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).buffers == i);
	observer_close(&w);
}

/* The very first event, of the process or of a child, happens while handlers have events too. */
UNIT(events_in_signal_handlers_are_exact_from_the_first)
{
	observer_track();
	unit_expect_fds(0);
	for (int i = 0; i < (testing_quick() ? 15 : 100); i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			timer_t timers[3];

			/* Timers start at a different point of the opening each time. */
			signal_storm(timers);
			for (volatile int k = 0; k < i * 300; k++)
				;
			for (uint64_t k = 0; k < 100; k++) {
				ttmem_alloc(0, TTMEM_DRAM, k, 8, "known");
				ttmem_phase_process("process");
				ttmem_pause();
				ttmem_resume();
			}
			signal_calm(timers);
			/* Events during a pause were counted as paused. */
			_exit(ttmem_enabled() == 1 ? 0 : 1);
		}
		observer_wait(child);
	}
}

static void *signal_worker(void *context)
{
	timer_t timers[3];

	signal_storm(timers);
	for (uint64_t i = 0; i < *(const uint64_t *)context; i++) {
		uint64_t address = (uint64_t)gettid() << 32 | i % 100;

		ttmem_alloc(0, TTMEM_DRAM, address, 8, NULL);
		ttmem_free(0, TTMEM_DRAM, address);
	}
	signal_calm(timers);
	return NULL;
}

UNIT(events_in_signal_handlers_of_threads_are_exact)
{
	uint64_t count = testing_quick() ? 5000 : OBSERVER_TSAN || OBSERVER_ASAN ? 20000 : 200000;
	pthread_t threads[3];
	struct observer w;

	observer_track();
	ttmem_alloc(1, TTMEM_DRAM, 1, 1, "known");
	for (int i = 0; i < 3; i++)
		assert(pthread_create(&threads[i], NULL, signal_worker, &count) == 0);
	for (int i = 0; i < 3; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	signal_check();
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 3 * count);
	assert(w.view.hot[TTMEM_DRAM].bytes == 0);
	observer_close(&w);
}

/* Simulates a handler running in the middle of one of this thread's calls. */
static void signal_interrupt(bool is_inside)
{
	static const uint32_t mark = THREAD_MARK;

	thread_self.busy = is_inside ? &mark : NULL;
}

/* More events than can be deferred, on a device without earlier ones: it must not look complete. */
UNIT(lost_on_a_new_device)
{
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	signal_interrupt(true);
	for (uint64_t i = 0; i < 10; i++)
		ttmem_alloc(9, TTMEM_L1, i, 1, NULL);
	ttmem_free(8, TTMEM_ANY, 1);
	signal_interrupt(false);
	ttmem_alloc(8, TTMEM_CB, 1, 1, NULL);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.reentry == 7);
	assert(observer_hot(&w, 9, TTMEM_L1).buffers == 4);
	assert(w.view.inexact == BOOK_INEXACT_LOW << TTMEM_L1);
	assert(observer_inexact(&w, 8) == BOOK_INEXACT_HIGH * 0x7f);
	observer_close(&w);
}

/* A handler runs after the flag is cleared, but before another's deferred events are recorded. */
UNIT(deferred_events_keep_their_order)
{
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	for (uint64_t i = 0; i < 20; i++) {
		signal_interrupt(true);
		ttmem_alloc(0, TTMEM_L1, 5, 1, NULL);
		ttmem_free(0, TTMEM_L1, 5);
		ttmem_alloc(0, TTMEM_L1, 6, 1 + i % 2, NULL);
		signal_interrupt(false);
		ttmem_free(0, TTMEM_L1, 6);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_L1).allocs == 40 && w.view.hot[TTMEM_L1].frees == 40);
	assert(w.view.hot[TTMEM_L1].buffers == 0 && w.view.inexact == 0);
	assert(w.view.cold[TTMEM_L1].unknown_frees == 0);
	assert(w.view.cold[TTMEM_L1].double_frees == 0);
	observer_close(&w);
}

/* A handler in the middle of a call may try anything. */
static void signal_everything(int number)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .address = 1, .size = 1, .owner = 5, .banks = 2};
	struct ttmem_free_args free_args = {
		.struct_size = sizeof(free_args), .address = 1, .flags = TTMEM_FLAG_HOOKED};
	struct ttmem_device_args device = {.struct_size = sizeof(device), .device = 1};
	const uint32_t mesh[] = {0, 1, 2, 3, 4, 5, 6, 7, 5000};
	struct ttmem_stats stats;

	(void)ttmem_enabled();
	ttmem_alloc_mesh(mesh, ARRAY_SIZE(mesh), TTMEM_L1, 5, 1, "never seen before");
	ttmem_free_mesh(mesh, ARRAY_SIZE(mesh), TTMEM_ANY, 5);
	ttmem_alloc_ex(&args);
	ttmem_free_ex(&free_args);
	ttmem_free_all(0, TTMEM_ANY, 5);
	ttmem_alloc_failed(0, TTMEM_L1, 5, 5);
	ttmem_device(&device);
	ttmem_device_close(1);
	ttmem_phase_push("x");
	ttmem_phase_pop();
	ttmem_phase_process("y");
	ttmem_mark("z");
	(void)ttmem_intern("w");
	(void)ttmem_stats(0, TTMEM_ANY, &stats);
	ttmem_reset_peak(0, TTMEM_ANY);
	ttmem_pause();
	ttmem_free(0, TTMEM_L1, 5);
	ttmem_resume();
	ttmem_goodbye();
	__atomic_fetch_add(&signal_runs[0], 1, __ATOMIC_RELAXED);
}

UNIT(everything_in_a_handler)
{
	double end = observer_now() + 0.5;
	struct observer w;
	timer_t timer;

	observer_track();
	observer_handle(SIGUSR1, signal_everything, SA_RESTART);
	timer = observer_timer(SIGUSR1, 100000);
	for (uint64_t i = 0; observer_now() < end || signal_ran() < 20; i++)
		ttmem_alloc(0, TTMEM_DRAM, i, 1, NULL);
	assert(timer_delete(timer) == 0);
	assert(ttmem_enabled() == 1);
	assert(observer_open(&w, getpid()));
	for (uint32_t device = 0; device < 8; device++) {
		if (observer_look(&w, device, VIEW_LIVING))
			assert(w.view.adds_up);
	}
	observer_close(&w);
}

/* An owner given inside an interrupted call is kept with the buffer. */
static void signal_with_owner(int number)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .type = TTMEM_CB, .size = 1, .owner = 5};

	args.address = __atomic_add_fetch(&signal_runs[0], 1, __ATOMIC_RELAXED);
	ttmem_alloc_ex(&args);
}

UNIT(owners_in_a_handler)
{
	double end = observer_now() + 0.3;
	struct observer w;
	timer_t timer;

	observer_track();
	observer_handle(SIGUSR1, signal_with_owner, SA_RESTART);
	timer = observer_timer(SIGUSR1, 30000);
	for (uint64_t i = 0; observer_now() < end; i++) {
		ttmem_alloc(0, TTMEM_DRAM, i, 1, NULL);
		ttmem_free(0, TTMEM_DRAM, i);
	}
	assert(timer_delete(timer) == 0);
	ttmem_free_all(0, TTMEM_CB, 5);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 0);
	assert(w.view.hot[TTMEM_CB].allocs + observer_header(&w)->rejected.reentry ==
	       signal_runs[0]);
	observer_close(&w);
}

/* The smallest stack that a handler may have: the kernel's own part, and two pages. */
static void signal_first_event(int number)
{
	ttmem_alloc(0, TTMEM_DRAM, 1, 77, "on a small stack");
	ttmem_alloc(0, TTMEM_DRAM, 1, 78, "size change");
	ttmem_free(0, TTMEM_DRAM, 2);
}

UNIT(small_alternate_stack)
{
	size_t size = bits_align_up((uint64_t)sysconf(_SC_MINSIGSTKSZ), 4096) + 2 * 4096;
	char *memory =
		mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 4096, .ss_size = size};
	struct observer w;

	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers need more stack than that");
	assert(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
	assert(sigaltstack(&stack, NULL) == 0);
	observer_track();
	observer_handle(SIGUSR1, signal_first_event, SA_ONSTACK);
	raise(SIGUSR1);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 78);
	observer_close(&w);
}
