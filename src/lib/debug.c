/* SPDX-License-Identifier: Apache-2.0 */

/* The debug file. Its path is copied once: the application may change its environment later. */

#include "lib/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"

static char debug_path[PATH_MAX];
static bool debug_decided;

void debug_open(void)
{
	const char *path = secure_getenv("TTMEM_DEBUG");

	if (debug_decided)
		return;
	debug_decided = true;
	if (path && strlen(path) < sizeof(debug_path))
		strcpy(debug_path, path);
}

bool debug_is_on(void)
{
	return debug_path[0] != '\0';
}

void debug_line(const char *format, ...)
{
	int saved_errno = errno;
	char line[512];
	va_list arguments;
	int length, more, fd;

	if (!debug_is_on())
		return;
	length = snprintf(line, sizeof(line), "ttmem[%d.%d] ", (int)getpid(), (int)gettid());
	va_start(arguments, format);
	more = vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	length = (int)bits_min((uint64_t)(length + (more > 0 ? more : 0)), sizeof(line) - 2);
	line[length++] = '\n';
	fd = open(debug_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		/* One write per line, so that lines of several threads do not mix. A full disk costs
		 * the line, nothing else. */
		ssize_t written = write(fd, line, (size_t)length);

		(void)written;
		(void)close(fd); /* nothing left to do if it fails */
	}
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
