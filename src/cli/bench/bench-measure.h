/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clocks and medians for the benchmark. A batch that never waits is timed in CPU time of its
 * thread, so that other work on the machine counts as little as possible; one that waits (the
 * socket, two threads, a first event) is timed by wall clock. Single events are timed with the
 * CPU's counter, fenced: the clock of a virtual machine may have steps of 10 ns and more.
 */

#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "cli/bench/bench.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t bench_measure_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t bench_measure_busy_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Fenced: everything before it has finished, nothing after it has begun. */
static inline uint64_t bench_measure_ticks(void)
{
#if defined(__x86_64__)
	uint64_t ticks;

	_mm_lfence();
	ticks = __rdtsc();
	_mm_lfence();
	return ticks;
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
	return ticks;
#else
	return bench_measure_ns();
#endif
}

/* Measures how fast the counter runs and what reading it twice costs. */
void bench_measure_calibrate(struct bench *bench);

/* The span in ns, without the timer's own cost; never below 0. */
double bench_measure_span(const struct bench *bench, uint64_t from, uint64_t to);

/* Adds a number; drops it if out of memory. */
void bench_measure_add(struct bench_series *series, double value);

/*
 * The value below which @share (0 to 1) of the series lies; NAN if it is empty. Sorts the series.
 */
double bench_measure_quantile(struct bench_series *series, double share);
