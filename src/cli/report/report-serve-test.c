/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting for the link of a server that never sends one. */

#include "cli/report/report-serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "cli/common/daemon-program.h"

static unsigned int reads; /* so far; 0: the kernel's */

/* In place of ttmemd. */
bool daemon_program_find(char ret_path[DAEMON_PROGRAM_SIZE])
{
	(void)snprintf(ret_path, DAEMON_PROGRAM_SIZE, "/bin/true");
	reads = 1;
	return true;
}

/* In place of libc's: interrupted by two signals that mean nothing, then by Ctrl-C. */
ssize_t read(int fd, void *buf, size_t nbytes)
{
	if (reads == 0)
		return syscall(SYS_read, fd, buf, nbytes);
	if (++reads == 4)
		(void)raise(SIGINT);
	if (reads > 4)
		_exit(1);
	errno = EINTR;
	return -1;
}

UNIT(only_a_signal_that_stops_the_command_ends_the_wait_for_a_link)
{
	const struct report_serve wish = {.file = "x.ttrec", .print = true};

	assert(report_serve(&wish) == 0 && reads == 4);
}
