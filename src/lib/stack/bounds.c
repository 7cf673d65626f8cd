/* SPDX-License-Identifier: Apache-2.0 */

/* Finds a thread's stack. Uses syscall(), because open() and read() are cancellation points. */

#include "lib/stack/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

#define BOUNDS_CHUNK 2048u /* small: the stack may have only a page left */

/* The main thread's stack grows into a gap of at least this size, which the kernel keeps free. */
#define BOUNDS_MAIN_GAP (UINT64_C(128) << 20)

static const char bounds_main_name[] = "[stack]";

/* Parses a hexadecimal number and moves @at past it. */
static uintptr_t bounds_number(const char **at, const char *end)
{
	uintptr_t value = 0;

	for (; *at < end; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			break;
	}
	return value;
}

static bool bounds_is_main(const char *line, const char *end)
{
	size_t length = sizeof(bounds_main_name) - 1;

	return (size_t)(end - line) > length && end[-(ptrdiff_t)length - 1] == ' ' &&
	       memcmp(end - length, bounds_main_name, length) == 0;
}

static bool bounds_line(const char *line, const char *end, uintptr_t inside,
			struct bounds *ret_bounds)
{
	const char *at = line;
	uintptr_t low = bounds_number(&at, end);
	uintptr_t high;

	if (at == end || *at != '-')
		return false;
	at++;
	high = bounds_number(&at, end);
	if (inside ? inside < low || inside >= high : !bounds_is_main(line, end))
		return false;
	/* The mapping may have merged with its neighbour; the stack ends at the descriptor. */
	*ret_bounds = (struct bounds){.low = low, .high = inside ? inside : high, .mapped = low};
	if (!inside)
		ret_bounds->low = high > BOUNDS_MAIN_GAP ? high - BOUNDS_MAIN_GAP : 0;
	return true;
}

bool bounds_parse(const char *lines, size_t length, uintptr_t inside, struct bounds *ret_bounds)
{
	const char *end = lines + length;

	while (lines < end) {
		const char *stop = memchr(lines, '\n', (size_t)(end - lines));

		if (!stop)
			stop = end;
		if (bounds_line(lines, stop, inside, ret_bounds))
			return true;
		lines = stop + (stop < end);
	}
	return false;
}

/* Reads in chunks; the rest of the last line moves to the front. Too long lines are dropped. */
static bool bounds_scan(int fd, uintptr_t inside, struct bounds *ret_bounds)
{
	char text[BOUNDS_CHUNK];
	size_t kept = 0;

	for (;;) {
		long n = syscall(SYS_read, fd, text + kept, sizeof(text) - kept);
		const char *last;
		size_t whole;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return bounds_parse(text, kept, inside, ret_bounds);
		kept += (size_t)n;
		last = memrchr(text, '\n', kept);
		whole = last ? (size_t)(last - text) + 1 : 0;
		if (bounds_parse(text, whole, inside, ret_bounds))
			return true;
		if (whole == 0 && kept == sizeof(text))
			whole = kept;
		memmove(text, text + whole, kept - whole);
		kept -= whole;
	}
}

void bounds_find(struct bounds *ret_bounds)
{
	/* A thread's descriptor is at the end of its stack, except for the main thread. */
	uintptr_t inside = gettid() == getpid() ? 0 : (uintptr_t)pthread_self();
	struct bounds found = {0};
	int saved_errno = errno;
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);

	if (fd >= 0) {
		(void)bounds_scan((int)fd, inside, &found); /* on failure the bounds stay unknown */
		(void)syscall(SYS_close, fd);               /* only read from */
	}
	errno = saved_errno;
	*ret_bounds = found;
}

bool bounds_find_alternate(uintptr_t inside, struct bounds *ret_bounds)
{
	int saved_errno = errno;
	stack_t stack;
	bool is_on = sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
	uintptr_t low = (uintptr_t)stack.ss_sp;

	errno = saved_errno;
	if (!is_on || inside < low || inside - low >= stack.ss_size)
		return false;
	*ret_bounds = (struct bounds){.low = low, .high = low + stack.ss_size, .mapped = low};
	return true;
}

size_t bounds_room(const struct bounds *bounds)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = bounds->low;
	struct rlimit limit;

	/* The main thread's may grow up to its limit. */
	if (low != bounds->mapped && getrlimit(RLIMIT_STACK, &limit) == 0 &&
	    limit.rlim_cur < bounds->high)
		low = bits_max(low, bounds->high - limit.rlim_cur);
	return here > low && here < bounds->high ? here - low : 0;
}
