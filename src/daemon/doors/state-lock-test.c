/* SPDX-License-Identifier: Apache-2.0 */

/* Who can keep a daemon from its state folder. */

#include "daemon/doors/state-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "source/proc/proc.h"

/* A process of that user that holds the lock; returns when it does. */
static pid_t hold(uid_t uid)
{
	int ready[2];
	char byte;
	pid_t child;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		int fd;

		if (uid != getuid() && setresuid(uid, uid, uid) < 0)
			_exit(1);
		/* Then its files in /proc belong to root: that must not make it trusted. */
		(void)prctl(PR_SET_DUMPABLE, 0);
		fd = open(unit_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert(close(ready[1]) == 0);
	assert(read(ready[0], &byte, 1) == 1 && close(ready[0]) == 0);
	return child;
}

static void end(pid_t child)
{
	assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

static int lock(int *ret_fd, uint32_t *ret_holder)
{
	struct proc proc;
	int r;

	assert(proc_open(&proc) == 0);
	r = state_lock_open(&proc, unit_dir(), ret_fd, ret_holder);
	proc_close(&proc);
	return r;
}

UNIT(a_second_daemon_learns_who_has_the_state)
{
	uint32_t holder = 0;
	int fd;
	pid_t child;

	assert(chmod(unit_dir(), 0700) == 0);
	child = hold(getuid());
	assert(lock(&fd, &holder) == -EBUSY && holder == (uint32_t)child);
	/* Also where others might have locked it. */
	assert(chmod(unit_dir(), 0755) == 0);
	assert(lock(&fd, &holder) == -EBUSY && holder == (uint32_t)child);
	end(child);
	assert(lock(&fd, &holder) == 0 && fd >= 0 && close(fd) == 0);
}

UNIT(the_lock_of_a_stranger_does_not_count)
{
	uint32_t holder = 0;
	int fd;
	pid_t child;

	if (geteuid() != 0)
		unit_skip("only root can become another user");
	assert(chmod(unit_dir(), 0755) == 0);
	child = hold(65534);
	assert(lock(&fd, &holder) == 0 && fd == -1);
	end(child);
}

UNIT(a_folder_that_is_not_there_decides_nothing)
{
	uint32_t holder = 0;
	int fd = 0;
	struct proc proc;

	assert(proc_open(&proc) == 0);
	assert(state_lock_open(&proc, "/nonexistent", &fd, &holder) == 0 && fd == -1);
	proc_close(&proc);
}
