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

#define SANDBOX_FOLDER "/proc/thread-self"
#define SANDBOX_STATUS SANDBOX_FOLDER "/status"

/* What the file says, in one word: threads may ask at the same time. 0 = not known. */
#define SANDBOX_KNOWN (UINT64_C(1) << 63)
#define SANDBOX_MODE_SHIFT 32 /* 0 none, 1 strict, 2 filters; below it, how many filters */
#define SANDBOX_STRICT (UINT64_C(1) << SANDBOX_MODE_SHIFT)
#define SANDBOX_MODES (UINT64_C(0xff) << SANDBOX_MODE_SHIFT)

/* Bytes read at a time: the stack may be a signal handler's small one. */
#define SANDBOX_PIECE 1024u

static uint64_t sandbox_at_start;

/* The number in a line that begins with @key; false if it does not. */
static bool sandbox_number(const char *line, const char *key, uint32_t *ret_number)
{
	size_t length = strlen(key);
	uint32_t number = 0;

	if (strncmp(line, key, length) != 0)
		return false;
	for (line += length; *line == ' ' || *line == '\t'; line++)
		;
	for (; *line >= '0' && *line <= '9'; line++)
		number = number * 10 + (uint32_t)(*line - '0');
	*ret_number = number;
	return true;
}

/* Reads a piece behind the @kept bytes. Return: bytes in @text, which ends with NUL; 0 = no more. */
static size_t sandbox_piece(int fd, char *text, size_t kept)
{
	long length;

	do
		length = syscall(SYS_read, fd, text + kept, SANDBOX_PIECE - kept);
	while (length < 0 && errno == EINTR);
	if (length <= 0)
		return 0;
	text[kept + (size_t)length] = '\0';
	return kept + (size_t)length;
}

/* Whole lines of @text. Return: whether the last of the two that matter was there. */
static bool sandbox_lines(char *text, uint64_t *now)
{
	uint32_t number;

	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		if (sandbox_number(line, "Seccomp:", &number))
			*now |= (uint64_t)number << SANDBOX_MODE_SHIFT & SANDBOX_MODES;
		if (sandbox_number(line, "Seccomp_filters:", &number)) {
			*now |= number;
			return true;
		}
	}
	return false;
}

/* By reads alone, which is all that strict mode allows; only one if the file is not ours. */
static uint64_t sandbox_read(int fd)
{
	char text[SANDBOX_PIECE + 1];
	uint64_t now = 0;
	size_t length = sandbox_piece(fd, text, 0);

	if (length == 0 || strncmp(text, "Name:", 5) != 0)
		return 0;
	now = SANDBOX_KNOWN;
	while (length > 0 && !sandbox_lines(text, &now)) {
		/* The rest of the last line comes with the next piece. Of a long line, nothing matters. */
		const char *last = strrchr(text, '\n');
		size_t kept = last ? length - (size_t)(last + 1 - text) : 0;

		memmove(text, text + length - kept, kept);
		length = sandbox_piece(fd, text, kept);
	}
	return now;
}

static int sandbox_open_status(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, SANDBOX_STATUS, O_RDONLY | O_CLOEXEC);
}

static void sandbox_close(int fd)
{
	if (fd >= 0)
		(void)syscall(SYS_close, fd); /* only read */
}

/* The folder and the file in it, at numbers in a row. Return: that of the file, -1 = none. */
static int sandbox_open_both(void)
{
	int folder = (int)syscall(SYS_openat, AT_FDCWD, SANDBOX_FOLDER,
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (folder < 0)
		return -1;
	folder = descriptor_move_high(folder);
	fd = sandbox_open_status();
	if (fd >= 0)
		fd = descriptor_move_high(fd);
	if (fd == folder + 1)
		return fd;
	sandbox_close(folder);
	sandbox_close(fd);
	return -1;
}

uint32_t sandbox_open(void)
{
	int saved_errno = errno;
	int fd = sandbox_open_status();

	if (fd >= 0) {
		__atomic_store_n(&sandbox_at_start, sandbox_read(fd), __ATOMIC_RELAXED);
		sandbox_close(fd);
		fd = sandbox_open_both();
	}
	errno = saved_errno;
	return (uint32_t)(fd + 1);
}

/*
 * Whether the descriptors are still ours. The program may have closed them and use the numbers itself; then
 * a read would take its data. A read of nothing takes nothing, and of a folder it has an error of its own: a
 * folder there, at a number that few programs reach, is the one before the file.
 */
static bool sandbox_is_ours(int fd)
{
	char none;

	return syscall(SYS_read, fd - 1, &none, 0) < 0 && errno == EISDIR;
}

/* Whether nothing has changed. Who is the first to know something, knows the start. */
static bool sandbox_is_as_before(uint64_t now)
{
	uint64_t start = 0;

	if ((now & SANDBOX_MODES) != SANDBOX_STRICT &&
	    __atomic_compare_exchange_n(&sandbox_at_start, &start, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return true;
	return now == __atomic_load_n(&sandbox_at_start, __ATOMIC_RELAXED);
}

bool sandbox_allows(uint32_t kept)
{
	int saved_errno = errno;
	int fd = (int)kept - 1;
	bool is_ours = fd > 0 && sandbox_is_ours(fd);
	uint64_t now = is_ours ? sandbox_read(fd) : 0;

	/* Closed by the program; or there was none: a forked child, an event of an early constructor. */
	if (!now) {
		fd = sandbox_open_status();
		now = fd >= 0 ? sandbox_read(fd) : 0;
	}
	if (now && !sandbox_is_as_before(now)) {
		errno = saved_errno;
		return false; /* and the descriptors stay open: closing them may be forbidden too */
	}
	/* The content of the file has shown that it is ours. */
	sandbox_close(fd);
	if (is_ours)
		sandbox_close((int)kept - 2);
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
