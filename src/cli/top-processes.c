/* SPDX-License-Identifier: Apache-2.0 */

/* What ttmem top does with processes: it asks who started them, and ends them for the user. */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/top-command.h"
#include "source/proc/proc.h"

int top_send(void *context, struct process_id process, int signal)
{
	CLEANUP_CLOSE int fd = -1;
	struct proc proc;
	int r = proc_open(&proc);

	(void)context;
	if (r < 0)
		return r;
	fd = proc_pid_fd(&proc, process);
	proc_close(&proc);
	if (fd < 0)
		return fd;
	return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0 ? -errno : 0;
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
