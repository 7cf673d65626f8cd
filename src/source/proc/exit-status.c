/* SPDX-License-Identifier: Apache-2.0 */

/* Asks the pidfd and /proc; see the header for when each of them knows. */

#include "source/proc/exit-status.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/files/small-file.h"
#include "source/proc/proc.h"

#define EXIT_STATUS_PATH 32
#define EXIT_STATUS_FILE 1024 /* a stat file has at most 52 numbers and a short name */
#define EXIT_STATUS_FIELD 52u /* exit_code in proc(5) */
#define EXIT_STATUS_TRIES 2   /* its parent may wait for it between our two questions: once */

/* struct pidfd_info and its requests, which Debian 12's headers do not have. */
struct exit_status_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};

_Static_assert(sizeof(struct exit_status_info) == 64, "as the first version of the kernel's");

#define EXIT_STATUS_INFO_EXIT (UINT64_C(1) << 3)
#define EXIT_STATUS_GET_INFO _IOWR(0xff, 11, struct exit_status_info)

static pthread_once_t exit_status_once = PTHREAD_ONCE_INIT;
static bool exit_status_kept;

static void exit_status_find_kernel(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname kernel;

	exit_status_kept = uname(&kernel) == 0 &&
			   sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
			   (major > 6 || (major == 6 && minor >= 15));
}

bool exit_status_is_kept(void)
{
	(void)pthread_once(&exit_status_once, exit_status_find_kernel); /* cannot fail on Linux */
	return exit_status_kept;
}

static bool exit_status_of_pidfd(int pid_fd, struct ending *ending)
{
	struct exit_status_info info = {.mask = EXIT_STATUS_INFO_EXIT};

	if (pid_fd < 0 || !exit_status_is_kept() ||
	    ioctl(pid_fd, EXIT_STATUS_GET_INFO, &info) < 0 || !(info.mask & EXIT_STATUS_INFO_EXIT))
		return false;
	return ending_set(ending, info.exit_code);
}

int exit_status_parse(const char *text, int *ret_status)
{
	const char *at = strrchr(text, ')'); /* comm, field 2, may contain any other */
	char *end;
	long status;

	if (!at)
		return -EBADMSG;
	at++;
	for (unsigned int field = 3; field < EXIT_STATUS_FIELD; field++) {
		at += strspn(at, " ");
		at += strcspn(at, " \n");
	}
	errno = 0;
	status = strtol(at, &end, 10);
	if (errno || end == at || (*end != '\n' && *end != ' ' && *end) || status < 0 ||
	    status > UINT16_MAX)
		return -EBADMSG;
	*ret_status = (int)status;
	return 0;
}

/* Whether we may trace the process: the kernel asks the same before it shows this link. */
static bool exit_status_may_trace(const struct proc *proc, uint32_t pid)
{
	char path[EXIT_STATUS_PATH], target[64];

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/ns/user", pid);
	return readlinkat(proc->root, path, target, sizeof(target)) > 0;
}

/* Of a process that has ended and was not waited for. */
static bool exit_status_of_zombie(const struct proc *proc, struct process_id id,
				  struct ending *ending)
{
	char path[EXIT_STATUS_PATH], text[EXIT_STATUS_FILE];
	struct proc_facts facts;
	int status;

	if (!exit_status_may_trace(proc, id.pid) || proc_read(proc, id.pid, &facts) < 0 ||
	    !proc_is_over(proc, &facts))
		return false;
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/stat", id.pid);
	/* Last: if it still is the process that we mean, it has been so all the time. */
	if (small_file_read(proc->root, path, text, sizeof(text)) < 0 ||
	    exit_status_parse(text, &status) < 0 || !proc_is_there(proc, id))
		return false;
	return ending_set(ending, status);
}

bool exit_status_read(const struct proc *proc, struct process_id id, int pid_fd,
		      struct ending *ending)
{
	for (unsigned int i = 0; i < EXIT_STATUS_TRIES; i++) {
		if (exit_status_of_pidfd(pid_fd, ending) || exit_status_of_zombie(proc, id, ending))
			return true;
	}
	return false;
}
