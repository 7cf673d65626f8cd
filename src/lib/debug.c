/* SPDX-License-Identifier: Apache-2.0 */

/* The debug file. Its path is copied once: the application may change its environment later. */

#include "lib/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"

#define DEBUG_LINE 512

static char debug_path[PATH_MAX];
static bool debug_decided;

void debug_open(void)
{
	const char *path = secure_getenv("TTMEM_DEBUG");
	size_t length = path ? strlen(path) : 0;

	if (debug_decided)
		return;
	debug_decided = true;
	if (length && length < sizeof(debug_path))
		memcpy(debug_path, path, length + 1);
}

bool debug_is_on(void)
{
	return debug_path[0] != '\0';
}

/* Only a plain file can be trusted not to block or to raise a signal, and it only below the limit. */
static bool debug_may_write(int fd, size_t length)
{
	struct rlimit limit;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return false;
	return limit.rlim_cur == RLIM_INFINITY || (uint64_t)st.st_size + length <= limit.rlim_cur;
}

static void debug_write(char *line, size_t length)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(debug_path, flags | O_NOCTTY, 0600);

	if (fd < 0)
		return;
	/* Names may contain anything: a line is a line. */
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	}
	line[length++] = '\n';
	if (debug_may_write(fd, length)) {
		/* One write per line, so that lines of several threads do not mix. A full disk costs
		 * the line, nothing else. */
		ssize_t written = write(fd, line, length);

		(void)written;
	}
	(void)close(fd); /* nothing left to do if it fails */
}

void debug_line(const char *format, ...)
{
	int saved_errno = errno;
	char line[DEBUG_LINE];
	va_list arguments;
	int cancel_state;
	int length, more;

	if (!debug_is_on())
		return;
	/* None of our calls is a place where a thread ends. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* cannot fail */
	length = snprintf(line, sizeof(line), "ttmem[%d.%d] ", (int)getpid(), (int)gettid());
	va_start(arguments, format);
	more = vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	length += more > 0 ? more : 0;
	debug_write(line, bits_min((uint64_t)length, sizeof(line) - 2));
	(void)pthread_setcancelstate(cancel_state, NULL); /* was valid before */
	errno = saved_errno;
}

void debug_opened(bool wanted, bool has_book)
{
	if (!wanted)
		debug_line("tracking is off: set TTMEM=1 or TT_ALLOC_TRACKING_ENABLED=1 "
			   "(TTMEM=0 wins over both)");
	else if (!has_book)
		debug_line(
			"tracking is wanted, but no book could be made: out of file descriptors, "
			"address space or memory?");
	else
		debug_line("tracking is on, the book is made");
}
