/* SPDX-License-Identifier: Apache-2.0 */

/* Many threads: forks while they run, simultaneous first events, one that blocks the others. */

#include <ttmem/ttmem.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/api/gate.h"
#include "lib/testing/testing-observer.h"

/* Threads run all the time while the process forks: nothing hangs, and each book is exact. */
#define CROWD_THREADS 4u
#define CROWD_FORKS (testing_soak() ? 10000 : testing_quick() ? 15 : 1000)
#define CROWD_FIRST_TIMES (testing_quick() ? 6 : 60)

struct crowd_worker {
	uint32_t number;
	uint32_t stop;
	uint64_t allocs;
	pthread_t thread;
};

static void *crowd_work(void *context)
{
	struct crowd_worker *self = context;
	char name[32];
	uint64_t i = 0;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		uint64_t address = (uint64_t)self->number << 32 | i % 1000;

		snprintf(name, sizeof(name), "%d", (int)(i / 10 % 100000));
		ttmem_alloc(self->number % 2, TTMEM_DRAM, address, 8, i % 10 ? NULL : name);
		ttmem_free(self->number % 2, TTMEM_DRAM, address);
		if (i % 64 == 0) {
			ttmem_phase_push("phase");
			ttmem_phase_pop();
		}
		i++;
	}
	self->allocs = i;
	return NULL;
}

static void crowd_start(struct crowd_worker *workers)
{
	for (uint32_t i = 0; i < CROWD_THREADS; i++) {
		workers[i] = (struct crowd_worker){.number = i};
		assert(pthread_create(&workers[i].thread, NULL, crowd_work, &workers[i]) == 0);
	}
}

static void crowd_stop(struct crowd_worker *workers)
{
	uint64_t allocs[2] = {0, 0};
	struct observer w;

	for (uint32_t i = 0; i < CROWD_THREADS; i++) {
		__atomic_store_n(&workers[i].stop, 1, __ATOMIC_RELAXED);
		assert(pthread_join(workers[i].thread, NULL) == 0);
		allocs[i % 2] += workers[i].allocs;
	}
	assert(observer_open(&w, getpid()));
	for (uint32_t device = 0; device < 2; device++) {
		struct book_hot hot = observer_hot(&w, device, TTMEM_DRAM);

		assert(hot.allocs == allocs[device] && hot.frees == allocs[device]);
		assert(hot.bytes == 0 && w.view.inexact == 0 && w.view.adds_up);
		assert(w.view.cold[TTMEM_DRAM].unknown_frees == 0);
	}
	assert(observer_header(&w)->rejected.lock == 0);
	observer_close(&w);
}

static _Noreturn void crowd_child(void)
{
	struct ttmem_stats stats;

	for (uint64_t k = 0; k < 10; k++)
		ttmem_alloc((uint32_t)k % 2, TTMEM_DRAM, k, 1, "child");
	ttmem_free(0, TTMEM_DRAM, 0);
	_exit(ttmem_stats(0, TTMEM_DRAM, &stats) == 0 && stats.bytes == 4 &&
			      ttmem_stats(1, TTMEM_DRAM, &stats) == 0 && stats.bytes == 5
		      ? 0
		      : 1);
}

UNIT_LONG(fork_under_threads, 120)
{
	struct crowd_worker workers[CROWD_THREADS];

	observer_track();
	crowd_start(workers);
	for (int i = 0; i < CROWD_FORKS; i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0)
			crowd_child();
		observer_wait(child);
	}
	crowd_stop(workers);
}

/* The same while the book is being made, paused or given a phase: many first events. */
static void *crowd_toggle(void *context)
{
	struct crowd_worker *self = context;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		ttmem_phase_process("one");
		ttmem_pause();
		ttmem_resume();
		ttmem_phase_process("another");
	}
	return NULL;
}

static _Noreturn void crowd_first_times(void)
{
	struct crowd_worker toggler = {.stop = 0}, worker = {.stop = 0};

	assert(pthread_create(&toggler.thread, NULL, crowd_toggle, &toggler) == 0);
	assert(pthread_create(&worker.thread, NULL, crowd_work, &worker) == 0);
	for (int i = 0; i < 4; i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			while (ttmem_enabled() == 0)
				ttmem_resume(); /* forked while it was paused */
			crowd_child();
		}
		observer_wait(child);
	}
	_exit(0);
}

UNIT_LONG(fork_while_the_gate_is_held, 120)
{
	observer_track();
	unit_expect_fds(0);
	for (int i = 0; i < CROWD_FIRST_TIMES; i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0)
			crowd_first_times();
		observer_wait(child);
	}
}

static uint64_t crowd_bytes(void)
{
	uint64_t bytes;
	struct observer w;

	assert(observer_count(getpid()) == 1 && observer_open(&w, getpid()));
	bytes = observer_hot(&w, 0, TTMEM_DRAM).bytes;
	observer_close(&w);
	return bytes;
}

static void *crowd_first(void *context)
{
	pthread_barrier_wait(context);
	ttmem_alloc(0, TTMEM_DRAM, (uintptr_t)pthread_self(), 1, "first");
	return NULL;
}

/* Many threads have their first event at once: there is one book, and nothing is lost. */
UNIT(one_book_for_all_threads)
{
	observer_track();
	unit_expect_fds(0);
	for (int i = 0; i < (testing_quick() ? 10 : 50); i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			pthread_barrier_t barrier;
			pthread_t threads[8];

			assert(pthread_barrier_init(&barrier, NULL, 8) == 0);
			for (int k = 0; k < 8; k++)
				assert(pthread_create(&threads[k], NULL, crowd_first, &barrier) ==
				       0);
			for (int k = 0; k < 8; k++)
				assert(pthread_join(threads[k], NULL) == 0);
			assert(crowd_bytes() == 8);
			_exit(0);
		}
		observer_wait(child);
	}
}

/* Far more threads than cores: most are not scheduled for long, and some of those hold the lock. */
#define CROWD_MANY 1000u
#define CROWD_PAIRS (testing_soak() ? 20000u : testing_quick() ? 50u : 500u)

static void *crowd_one_of_many(void *context)
{
	pthread_barrier_t *barrier = context;
	uint64_t address = (uintptr_t)pthread_self();

	pthread_barrier_wait(barrier);
	for (uint64_t i = 0; i < CROWD_PAIRS; i++) {
		ttmem_alloc(0, TTMEM_DRAM, address + i, 8, "many");
		ttmem_free(0, TTMEM_DRAM, address + i);
	}
	return NULL;
}

UNIT_LONG(a_thousand_threads_at_once, 120)
{
	bool slow = OBSERVER_TSAN || OBSERVER_ASAN || testing_quick();
	uint32_t count = slow ? CROWD_MANY / 10 : CROWD_MANY;
	pthread_t threads[CROWD_MANY];
	pthread_barrier_t barrier;
	pthread_attr_t small;
	struct book_hot hot;
	struct observer w;

	observer_track();
	assert(pthread_attr_init(&small) == 0);
	assert(pthread_attr_setstacksize(&small, 256 << 10) == 0);
	assert(pthread_barrier_init(&barrier, NULL, count) == 0);
	for (uint32_t i = 0; i < count; i++)
		assert(pthread_create(&threads[i], &small, crowd_one_of_many, &barrier) == 0);
	for (uint32_t i = 0; i < count; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	assert(observer_open(&w, getpid()));
	hot = observer_hot(&w, 0, TTMEM_DRAM);
	assert(observer_header(&w)->rejected.lock == 0);
	assert(hot.allocs == (uint64_t)count * CROWD_PAIRS && hot.frees == hot.allocs);
	assert(hot.bytes == 0 && w.view.inexact == 0 && w.view.adds_up);
	observer_close(&w);
}

/*
 * A thread is stopped while it opens the gate, for example by a debugger. The others wait for it
 * once, not at every event. When it continues they are tracked again, and the events they missed
 * are counted.
 */
UNIT(a_gate_held_for_ever_does_not_hang_others)
{
	struct observer w;
	double start;

	observer_track();
	ttmem_pause(); /* so that the page is set up to be wiped in children */
	ttmem_resume();
	assert(lock_take(&gate_current.lock));
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	start = observer_now();
	for (uint64_t i = 0; i < 1000; i++)
		ttmem_alloc(0, TTMEM_DRAM, i, 1, NULL);
	assert(observer_now() - start < 2);
	assert(ttmem_enabled() == 0 && observer_count(getpid()) == 0);
	lock_drop(&gate_current.lock);
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 1);
	assert(observer_header(&w)->rejected.lock == 1002);
	observer_close(&w);
}
