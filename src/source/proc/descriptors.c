/* SPDX-License-Identifier: Apache-2.0 */

/* Walks the descriptor tables of a process. */

#include "source/proc/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "source/proc/proc.h"

#define DESCRIPTORS_NAME "/memfd:ttmem"
#define DESCRIPTORS_KERNEL_NAME "/ttmem-book" /* no longer than the other */
#define DESCRIPTORS_CHECK 256                 /* descriptors between two checks of the clock */

struct descriptors {
	const struct proc *proc;
	uint32_t pid;
	uint64_t deadline;
	descriptors_fn *found;
	void *context;
};

static bool descriptors_is_candidate(int folder, const char *name)
{
	char target[sizeof(DESCRIPTORS_NAME) - 1];
	struct stat link;

	if (readlinkat(folder, name, target, sizeof(target)) != (ssize_t)sizeof(target) ||
	    (memcmp(target, DESCRIPTORS_NAME, sizeof(target)) != 0 &&
	     memcmp(target, DESCRIPTORS_KERNEL_NAME, sizeof(DESCRIPTORS_KERNEL_NAME) - 1) != 0))
		return false;
	/* The permissions of the link itself show how the file is open. */
	return fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && link.st_mode & S_IWUSR;
}

/* Walks one table. Returns as descriptors_each(); *ret_count: how many descriptors it has. */
static int descriptors_table(const struct descriptors *walk, const char *path, size_t *ret_count)
{
	CLEANUP_CLOSEDIR DIR *listing = proc_list(walk->proc, path);
	const struct dirent *entry;
	size_t count = 0;
	int r;

	*ret_count = 0;
	if (!listing)
		return -errno;
	errno = 0;
	while ((entry = readdir(listing))) {
		if (entry->d_name[0] == '.')
			continue;
		*ret_count = ++count;
		if (count % DESCRIPTORS_CHECK == 0 && clock_ns(CLOCK_MONOTONIC) > walk->deadline)
			return -ETIME;
		if (!descriptors_is_candidate(dirfd(listing), entry->d_name))
			continue;
		r = walk->found(walk->context, walk->pid, dirfd(listing), entry->d_name);
		if (r != 0)
			return r;
		errno = 0;
	}
	return -errno;
}

/* Whether two threads share their table. If that cannot be determined, they are assumed to. */
static bool descriptors_are_shared(const struct proc *proc, uint32_t a, uint32_t b)
{
	long r;

	if (!proc->is_real)
		return false;
	r = syscall(SYS_kcmp, (pid_t)a, (pid_t)b, KCMP_FILES, 0, 0);
	return r == 0 || r < 0;
}

/* @known: a thread whose table has been walked, 0 = none. */
static int descriptors_threads(const struct descriptors *walk, uint32_t known)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	char path[64];
	size_t threads = 0;
	uint32_t tid;

	snprintf(path, sizeof(path), "%" PRIu32 "/task", walk->pid);
	listing = proc_list(walk->proc, path);
	if (!listing)
		return -errno;
	while ((tid = proc_next(listing))) {
		size_t count;
		int r;

		if (++threads % DESCRIPTORS_CHECK == 0 &&
		    clock_ns(CLOCK_MONOTONIC) > walk->deadline)
			return -ETIME;
		if (tid == walk->pid || (known && descriptors_are_shared(walk->proc, known, tid)))
			continue;
		snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/fd", walk->pid, tid);
		r = descriptors_table(walk, path, &count);
		if (r > 0 || r == -ETIME)
			return r;
		if (count > 0)
			known = tid;
	}
	return 0;
}

int descriptors_each(const struct proc *proc, uint32_t pid, uint64_t deadline,
		     descriptors_fn *found, void *context)
{
	struct descriptors walk = {proc, pid, deadline, found, context};
	struct stat tasks;
	char path[64];
	size_t count;
	int r;

	snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	r = descriptors_table(&walk, path, &count);
	if (r > 0 || r == -ETIME || r == -EPERM || r == -EACCES)
		return r == -EPERM ? -EACCES : r;

	/*
	 * A folder has a link for each subfolder: the link count shows several threads without
	 * listing them.
	 */
	snprintf(path, sizeof(path), "%" PRIu32 "/task", pid);
	if (fstatat(proc->root, path, &tasks, 0) < 0)
		return -errno;
	if (tasks.st_nlink <= 3 && proc->is_real)
		return r;
	r = descriptors_threads(&walk, count > 0 ? pid : 0);
	return r == -ENOENT ? 0 : r;
}
