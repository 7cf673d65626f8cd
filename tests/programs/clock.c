/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clocks that a test can set without changing the machine's: linked into a program, this replaces
 * the C library's function. The file named by TTMEM_TEST_CLOCK holds two 64-bit numbers: how many
 * nanoseconds the time of day is ahead or behind, and how many the clock since boot is ahead. The
 * latter only grows. A kernel wait until an absolute time on that clock lasts too long; the loop is
 * not affected, because it waits for a duration.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_SECOND INT64_C(1000000000)

static const volatile int64_t *clock_ahead; /* of the time of day, and since boot */

__attribute__((constructor)) static void clock_open(void)
{
	const char *path = getenv("TTMEM_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *file;

	if (fd < 0)
		return;
	file = mmap(NULL, 2 * sizeof(*clock_ahead), PROT_READ, MAP_SHARED, fd, 0);
	if (file != MAP_FAILED)
		clock_ahead = file;
	close(fd);
}

static bool clock_is_set(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_MONOTONIC;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *tp)
{
	int r = (int)syscall(SYS_clock_gettime, id, tp);
	int64_t ns;

	if (r == 0 && clock_ahead && clock_is_set(id)) {
		ns = (int64_t)tp->tv_sec * CLOCK_SECOND + tp->tv_nsec +
		     clock_ahead[id == CLOCK_MONOTONIC];
		tp->tv_sec = ns / CLOCK_SECOND;
		tp->tv_nsec = ns % CLOCK_SECOND;
	}
	return r;
}
