/* SPDX-License-Identifier: Apache-2.0 */

/* Starting and reaping, with posix_spawn() and a pidfd. */

#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

/*
 * What was handed over is moved first: its number may be one of those that are about to be replaced,
 * which is why @setup->input is a duplicate above CHILD_FD here.
 */
static int child_descriptors(posix_spawn_file_actions_t *actions, const struct child_setup *setup)
{
	int r = 0;

	if (setup->extra >= 0)
		r = posix_spawn_file_actions_adddup2(actions, setup->extra, CHILD_FD);
	if (r == 0 && setup->input >= 0)
		r = posix_spawn_file_actions_adddup2(actions, setup->input, STDIN_FILENO);
	else if (r == 0)
		r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY,
						     0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0 && !setup->keeps_errors)
		r = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(
			actions, setup->extra >= 0 ? CHILD_FD + 1 : CHILD_FD);
	if (r == 0 && setup->folder)
		r = posix_spawn_file_actions_addchdir_np(actions, setup->folder);
	return -r;
}

static int child_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	return -r;
}

static int child_spawn(const struct child_setup *setup, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	/* The interface wants them writable and does not write. */
	char *const *arguments = (char *const *)(uintptr_t)setup->arguments;
	char *const *environment = (char *const *)(uintptr_t)setup->environment;
	int r;

	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = child_descriptors(&actions, setup);
		if (r == 0)
			r = child_attributes(&attributes);
		if (r == 0)
			r = -posix_spawn(ret_pid, setup->program, &actions, &attributes, arguments,
					 environment);
		(void)posix_spawnattr_destroy(&attributes); /* only frees */
	}
	(void)posix_spawn_file_actions_destroy(&actions); /* likewise */
	return r;
}

/* The loop may be more urgent than others; what it starts is not, and gets what the caller has. */
static int child_spawn_calm(const struct child_setup *setup, pid_t *ret_pid)
{
	int before, r;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	if (before >= 0 || errno != 0)
		return child_spawn(setup, ret_pid);
	(void)setpriority(PRIO_PROCESS, 0, 0); /* less is always allowed */
	r = child_spawn(setup, ret_pid);
	(void)setpriority(PRIO_PROCESS, 0, before); /* if that is not: as everybody else */
	return r;
}

static int child_reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void child_ready(struct loop_source *source, uint32_t events)
{
	struct child *child = container_of(source, struct child, end);
	pid_t pid = child->pid;

	child_forget(child);
	child->ended(child, child_reap(pid)); /* it has ended: this does not wait */
}

int child_start(struct child *child, struct loop *loop, const struct child_setup *setup)
{
	struct child_setup moved = *setup;
	CLEANUP_CLOSE int input = -1;
	pid_t pid = 0;
	int r;

	if (setup->input >= 0) {
		input = fcntl(setup->input, F_DUPFD_CLOEXEC, CHILD_FD + 1);
		if (input < 0)
			return -errno;
		moved.input = input;
	}
	/* What systemd gave to the daemon would else be given on with exec. It takes nothing from us: our own
	 * rights are in other sets. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* kernels since 4.3 */
	r = child_spawn_calm(&moved, &pid);
	if (r < 0)
		return r;
	child->loop = loop;
	child->end.ready = child_ready;
	child->end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	r = child->end.fd < 0 ? -errno : 0;
	if (r == 0 && loop)
		r = loop_add(loop, &child->end, EPOLLIN);
	if (r < 0) {
		/* No descriptor, no memory: one whose end we would not see must not be. */
		(void)kill(pid, SIGKILL); /* ours, and not reaped yet */
		(void)child_reap(pid);
		child->pid = 0;
		if (child->end.fd >= 0)
			(void)close(child->end.fd); /* nothing was written to it */
		child->end.fd = -1;
		return r;
	}
	child->pid = pid;
	return 0;
}

void child_kill(const struct child *child)
{
	if (child->pid > 0)
		(void)kill(-child->pid, SIGKILL); /* the group lasts until we have reaped */
}

void child_forget(struct child *child)
{
	if (child->end.fd >= 0) {
		if (child->loop)
			loop_remove(child->loop, &child->end);
		(void)close(child->end.fd); /* nothing was written to it */
	}
	child->end.fd = -1;
	child->pid = 0;
}

bool child_wait(struct child *child, int timeout_ms)
{
	struct pollfd end = {.fd = child->end.fd, .events = POLLIN};
	pid_t pid = child->pid;

	if (pid <= 0)
		return true;
	if (poll(&end, 1, timeout_ms) != 1)
		return false;
	child_forget(child);
	(void)child_reap(pid); /* how it ended is of no interest */
	return true;
}
