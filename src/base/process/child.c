/* SPDX-License-Identifier: Apache-2.0 */

/* Starts and reaps programs with posix_spawn() and a pidfd. */

#include "base/process/child.h"

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
 * The extra descriptor is moved first: its number may be one of those about to be replaced, which
 * is why @setup->input is a duplicate above CHILD_FD here.
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

/* What @setup does not name stays as it is. */
static int child_descriptors_foreground(posix_spawn_file_actions_t *actions,
					const struct child_setup *setup)
{
	int r = 0;

	if (setup->input >= 0)
		r = posix_spawn_file_actions_adddup2(actions, setup->input, STDIN_FILENO);
	if (r == 0 && setup->output >= 0)
		r = posix_spawn_file_actions_adddup2(actions, setup->output, STDOUT_FILENO);
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
	/* The interface takes writable arrays but does not write to them. */
	char *const *arguments = (char *const *)(uintptr_t)setup->arguments;
	char *const *environment =
		setup->environment ? (char *const *)(uintptr_t)setup->environment : environ;
	int r;

	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		if (setup->is_foreground)
			r = child_descriptors_foreground(&actions, setup);
		else
			r = child_descriptors(&actions, setup);
		if (r == 0 && !setup->is_foreground)
			r = child_attributes(&attributes);
		if (r == 0)
			r = -posix_spawnp(ret_pid, setup->program, &actions, &attributes, arguments,
					  environment);
		(void)posix_spawnattr_destroy(&attributes); /* only frees */
	}
	(void)posix_spawn_file_actions_destroy(&actions); /* likewise */
	return r;
}

/* The loop may have a raised priority; what it starts must not inherit it. */
static int child_spawn_calm(const struct child_setup *setup, pid_t *ret_pid)
{
	int before, r;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	if (before >= 0 || errno != 0)
		return child_spawn(setup, ret_pid);
	(void)setpriority(PRIO_PROCESS, 0, 0); /* lowering is always allowed */
	r = child_spawn(setup, ret_pid);
	(void)setpriority(PRIO_PROCESS, 0, before); /* if that fails, we run at normal priority */
	return r;
}

int child_reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void child_ready(struct loop_source *source, uint32_t events)
{
	struct child *child = container_of(source, struct child, end);
	pid_t pid = child->pid;

	child_forget(child);
	child->ended(child, child_reap(pid)); /* it has exited: this does not wait */
}

/* Starts a program in its own session, with nothing of ours. */
static int child_spawn_apart(const struct child_setup *setup, pid_t *ret_pid)
{
	struct child_setup moved = *setup;
	CLEANUP_CLOSE int input = -1;

	if (setup->input >= 0) {
		input = fcntl(setup->input, F_DUPFD_CLOEXEC, CHILD_FD + 1);
		if (input < 0)
			return -errno;
		moved.input = input;
	}
	/*
	 * Capabilities that systemd gave to the daemon would otherwise be inherited through exec.
	 * We lose nothing: our own are in other sets.
	 */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* kernels since 4.3 */
	return child_spawn_calm(&moved, ret_pid);
}

int child_start(struct child *child, struct loop *loop, const struct child_setup *setup)
{
	pid_t pid = 0;
	int r;

	r = setup->is_foreground ? child_spawn(setup, &pid) : child_spawn_apart(setup, &pid);
	if (r < 0)
		return r;
	child->loop = loop;
	child->end.ready = child_ready;
	child->end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (loop)
		r = child->end.fd < 0 ? -errno : loop_add(loop, &child->end, EPOLLIN);
	if (r < 0) {
		/* No descriptor or no memory: a child whose exit we would not see must not run. */
		(void)kill(pid, SIGKILL); /* our child, not reaped yet */
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
		(void)kill(-child->pid, SIGKILL); /* the group exists until we have reaped */
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
	if (timeout_ms >= 0 && poll(&end, 1, timeout_ms) != 1)
		return false;
	child_forget(child);
	child->status = child_reap(pid);
	return true;
}
