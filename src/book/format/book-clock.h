/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The clock of a book: a cycle counter where the kernel itself trusts it, otherwise
 * CLOCK_MONOTONIC. The header records which one, and the reader converts time stamps. Times are for
 * display only: order comes from event numbers.
 */

#include <stdint.h>

#include "base/clock.h"
#include "book/format/layout.h"

/*
 * Of a writer only, beyond enum book_clock. Coarse: CLOCK_MONOTONIC in steps of the kernel's tick, for
 * processes that must not read a cycle counter, which every finer clock does too; in the book it is
 * BOOK_CLOCK_MONOTONIC. Stopped: the time at which the process was frozen.
 */
#define BOOK_CLOCK_COARSE 0x100u
#define BOOK_CLOCK_STOPPED 0x101u

/* The best clock on this machine, as enum book_clock. */
uint32_t book_clock_choose(void);

static inline uint64_t book_clock_read(uint32_t kind)
{
#if defined(__x86_64__)
	if (__builtin_expect(kind == BOOK_CLOCK_TSC, 1))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(kind == BOOK_CLOCK_CNTVCT, 1)) {
		uint64_t value;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
		return value;
	}
#endif
	return clock_ns(kind == BOOK_CLOCK_COARSE ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
}
