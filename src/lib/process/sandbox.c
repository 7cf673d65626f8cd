/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the lines "Seccomp:" and "Seccomp_filters:" of /proc/thread-self/status. By bare system calls,
 * because those of libc are places where a cancelled thread ends.
 */

#include "lib/process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/process/descriptor.h"

#define SANDBOX_STATUS "/proc/thread-self/status"

struct sandbox {
	bool is_known;
	uint32_t mode; /* 0 none, 1 strict, 2 filters */
	uint32_t filters;
};

static struct sandbox sandbox_at_start;

/* The number in a line that begins with @key; 0 if there is none, as with kernels that lack it. */
static uint32_t sandbox_number(const char *text, const char *key)
{
	const char *found = strstr(text, key);
	uint32_t number = 0;

	if (!found)
		return 0;
	for (found += strlen(key); *found == ' ' || *found == '\t'; found++)
		;
	for (; *found >= '0' && *found <= '9'; found++)
		number = number * 10 + (uint32_t)(*found - '0');
	return number;
}

/* One read: more is not needed, and strict mode allows nothing else. */
static struct sandbox sandbox_read(int fd)
{
	/* Not on the stack, which may be a signal handler's small one. Threads read the same. */
	static char text[4096];
	struct sandbox now = {.is_known = false};
	long length;

	do
		length = syscall(SYS_read, fd, text, sizeof(text) - 1);
	while (length < 0 && errno == EINTR);
	if (length <= 0)
		return now;
	text[length] = '\0';
	now.is_known = strncmp(text, "Name:", 5) == 0;
	now.mode = sandbox_number(text, "\nSeccomp:");
	now.filters = sandbox_number(text, "\nSeccomp_filters:");
	return now;
}

static int sandbox_open_status(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, SANDBOX_STATUS, O_RDONLY | O_CLOEXEC);
}

uint32_t sandbox_open(void)
{
	int saved_errno = errno;
	int fd = sandbox_open_status();

	if (fd >= 0) {
		sandbox_at_start = sandbox_read(fd);
		(void)syscall(SYS_close, fd); /* only read */
		fd = sandbox_open_status();
	}
	if (fd >= 0)
		fd = descriptor_move_high(fd);
	errno = saved_errno;
	return (uint32_t)(fd + 1);
}

static bool sandbox_is_as_before(const struct sandbox *now)
{
	return now->mode == sandbox_at_start.mode && now->filters == sandbox_at_start.filters;
}

bool sandbox_allows(uint32_t kept)
{
	int saved_errno = errno;
	struct sandbox now = {.is_known = false};
	int fd = (int)kept - 1;

	if (fd >= 0)
		now = sandbox_read(fd);
	/* Closed by the program; or there was none: a forked child, an event of an early constructor. */
	if (!now.is_known) {
		fd = sandbox_open_status();
		if (fd >= 0)
			now = sandbox_read(fd);
	}
	if (!sandbox_at_start.is_known && now.mode != 1)
		sandbox_at_start = now;
	if (now.is_known && !sandbox_is_as_before(&now)) {
		errno = saved_errno;
		return false; /* and the descriptor stays open: closing it may be forbidden too */
	}
	if (fd >= 0)
		(void)syscall(SYS_close, fd); /* only read; its content has shown that it is ours */
	errno = saved_errno;
	return true;
}

bool sandbox_forbids_clock(void)
{
	int saved_errno = errno, setting = PR_TSC_ENABLE;
	bool forbids = prctl(PR_GET_TSC, &setting) == 0 && setting == PR_TSC_SIGSEGV;

	errno = saved_errno;
	return forbids;
}
