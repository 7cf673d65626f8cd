/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel lists all locks, with the process that took each: that tells a stranger from a daemon. */

#include "daemon/doors/state-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "source/proc/proc.h"

#define STATE_LOCK_LINES_MAX 100000u /* anybody may hold many locks */

/*
 * The process that has locked the file; 0 if it is not listed: then it is in another pid namespace.
 * Devices are not compared: some file systems show others there than stat().
 */
static uint32_t state_lock_holder(const struct proc *proc, ino_t inode)
{
	CLEANUP_FCLOSE FILE *file = small_file_stream(proc->root, "locks");
	char line[256];

	for (unsigned int i = 0; file && i < STATE_LOCK_LINES_MAX; i++) {
		uint32_t pid;
		uint64_t number;

		if (!fgets(line, sizeof(line), file))
			break;
		if (sscanf(line, "%*u: FLOCK %*s %*s %" SCNu32 " %*x:%*x:%" SCNu64, &pid,
			   &number) == 2 &&
		    number == inode)
			return pid;
	}
	return 0;
}

static bool state_lock_is_stranger(const struct proc *proc, uint32_t pid, const struct stat *folder)
{
	struct proc_facts facts;

	/* Only its owner and root can have opened it. */
	if (!(folder->st_mode & (S_IRGRP | S_IROTH)))
		return false;
	return pid == 0 || proc_read(proc, pid, &facts) < 0 ||
	       (facts.real_uid != geteuid() && facts.real_uid != 0 &&
		facts.real_uid != folder->st_uid);
}

int state_lock_open(const struct proc *proc, const char *folder, int *ret_fd, uint32_t *ret_holder)
{
	CLEANUP_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	uint32_t holder;

	*ret_fd = -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*ret_fd = cleanup_steal_fd(&fd);
		return 0;
	}
	if (errno != EWOULDBLOCK)
		return 0; /* such as a file system without locks */
	holder = state_lock_holder(proc, st.st_ino);
	if (state_lock_is_stranger(proc, holder, &st))
		return 0;
	*ret_holder = holder;
	return -EBUSY;
}
