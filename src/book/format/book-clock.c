/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Choosing the clock. The TSC is used only if the processor reports it as invariant and the kernel
 * uses it as its own clocksource: then it is synchronised between cores and never stops.
 */

#include "book/format/book-clock.h"

#include <fcntl.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

#include "base/files/small-file.h"

static int book_clock_tsc_is_invariant(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}

static int book_clock_kernel_uses_tsc(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char name[16];

	return small_file_read(AT_FDCWD, path, name, sizeof(name)) >= 3 &&
	       strncmp(name, "tsc", 3) == 0;
}
#endif

uint32_t book_clock_choose(void)
{
#if defined(__x86_64__)
	if (book_clock_tsc_is_invariant() && book_clock_kernel_uses_tsc())
		return BOOK_CLOCK_TSC;
#elif defined(__aarch64__)
	return BOOK_CLOCK_CNTVCT;
#endif
	return BOOK_CLOCK_MONOTONIC;
}
