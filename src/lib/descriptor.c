/* SPDX-License-Identifier: Apache-2.0 */

/* Moving a descriptor; the header tells why. */

#include "lib/descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"

/* Above what programs number by hand, below what would make the kernel grow the process's table (and
 * what select() cannot take). */
#define DESCRIPTOR_TOP 1024u
#define DESCRIPTOR_BELOW 32u
#define DESCRIPTOR_FIRST 3u /* below are stdin, stdout and stderr, open or not */

/* The place for a process that may not have as many. */
static int descriptor_lower_place(void)
{
	struct rlimit limit = {.rlim_cur = DESCRIPTOR_TOP};
	uint64_t top;

	(void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
	top = bits_min(limit.rlim_cur, DESCRIPTOR_TOP);
	return (int)(top > DESCRIPTOR_BELOW + DESCRIPTOR_FIRST ? top - DESCRIPTOR_BELOW
							       : DESCRIPTOR_FIRST);
}

int descriptor_move_high(int fd)
{
	int top = (int)(DESCRIPTOR_TOP - DESCRIPTOR_BELOW);
	int moved = -1;

	if (fd < top)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, top);
	if (moved < 0) {
		top = descriptor_lower_place();
		if (fd < top)
			moved = fcntl(fd, F_DUPFD_CLOEXEC, top);
	}
	if (moved < 0)
		return fd;
	(void)close(fd); /* its twin lives on */
	return moved;
}
