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
#else
	(void)kind;
#endif
	return clock_ns(CLOCK_MONOTONIC);
}
