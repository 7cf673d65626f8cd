/* SPDX-License-Identifier: Apache-2.0 */

/* What ttmem top does with processes: it asks who started them, and ends them for the user. */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/top-command.h"
#include "source/proc/proc.h"

int top_send(void *context, uint32_t pid, uint64_t start_ticks, int signal)
{
	CLEANUP_CLOSE int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct proc proc;
	int r;

	(void)context;
	if (fd < 0)
		return -errno;
	r = proc_open(&proc);
	if (r < 0)
		return r;
	/* The descriptor is of whoever has the pid now; that must be who is on the screen. */
	if (proc_start_ticks(&proc, pid) != start_ticks)
		r = -ESRCH;
	proc_close(&proc);
	if (r == 0 && syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0)
		r = -errno;
	return r;
}

uint32_t top_parent_of(void *context, uint32_t pid)
{
	struct proc_facts facts = {0};
	struct proc proc;

	(void)context;
	if (proc_open(&proc) < 0)
		return 0;
	if (proc_read(&proc, pid, &facts) < 0)
		facts.parent = 0;
	proc_close(&proc);
	return facts.parent;
}
