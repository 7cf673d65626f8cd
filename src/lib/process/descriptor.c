/* SPDX-License-Identifier: Apache-2.0 */

/* Moves a descriptor to a high number. */

#include "lib/process/descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"

/*
 * Above the numbers that programs choose by hand; below those that select() cannot take and that
 * would make the kernel grow the process's descriptor table.
 */
#define DESCRIPTOR_TOP 1024u
#define DESCRIPTOR_BELOW 32u
#define DESCRIPTOR_FIRST 3u /* below are stdin, stdout and stderr, open or not */

/* The place in a process whose descriptor limit is lower. */
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
	(void)close(fd); /* its duplicate stays open */
	return moved;
}
