/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clocks and medians for the bench. A batch that never waits is timed in time that this thread had a
 * processor, so that other people's work on the machine counts as little as it can; one that waits
 * (the socket, two threads, a first event) is timed by the clock on the wall. Single events are timed
 * with the processor's counter, fenced: the clock of a virtual machine may step by 10 ns and more.
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

/* Nothing before it is still under way, nothing behind it has begun. */
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

/* Finds out how fast the counter runs and what reading it twice costs. */
void bench_measure_calibrate(struct bench *bench);

/* The span in ns, without the timer's own share; never below 0. */
double bench_measure_span(const struct bench *bench, uint64_t from, uint64_t to);

/* Adds a number; without memory for it the number is left out. */
void bench_measure_add(struct bench_series *series, double value);

/* The value below which @share (0 to 1) of the series lies; NAN if it is empty. Sorts the series. */
double bench_measure_quantile(struct bench_series *series, double share);
