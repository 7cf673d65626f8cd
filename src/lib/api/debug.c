/* SPDX-License-Identifier: Apache-2.0 */

/* The debug file. Its path is copied once: the application may change its environment later. */

#include "lib/api/debug.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/process/freeze.h"
#include "lib/process/append-file.h"

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
	return debug_path[0] != '\0' && !freeze_is_on();
}

static void debug_write(char *line, size_t length)
{
	/* Names may contain anything, but a record is one line. */
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	}
	line[length++] = '\n';
	append_file_record(debug_path, false, &(struct iovec){line, length}, 1);
}

void debug_line(const char *format, ...)
{
	int saved_errno = errno;
	char line[DEBUG_LINE];
	va_list arguments;
	int length, more;

	if (!debug_is_on())
		return;
	length = snprintf(line, sizeof(line), "ttmem[%d.%d] ", (int)getpid(), (int)gettid());
	va_start(arguments, format);
	more = vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	length += more > 0 ? more : 0;
	debug_write(line, bits_min((uint64_t)length, sizeof(line) - 2));
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
