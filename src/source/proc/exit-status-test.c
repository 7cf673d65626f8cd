/* SPDX-License-Identifier: Apache-2.0 */

/* Statuses of real processes that have ended, waited for or not, as those see them who may and who may not. */

#include "source/proc/exit-status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "source/proc/proc.h"

#define NOBODY 65534

/* 22 is the start time, 52 the status. */
#define FIELDS                                                                                     \
	" Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21 22 23 24 25 26 27 28 29 30 31" \
	" 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 "

UNIT(the_status_is_field_52_whatever_the_name_is)
{
	int status = -1;

	assert(exit_status_parse("17 (cat)" FIELDS "768\n", &status) == 0 && status == 768);
	assert(exit_status_parse("17 (a) 1 2 (b)" FIELDS "9\n", &status) == 0 && status == 9);
	assert(exit_status_parse("17 (a)" FIELDS "0 53\n", &status) == 0 && status == 0);
	status = 5;
	assert(exit_status_parse("17 (a)" FIELDS "\n", &status) == -EBADMSG);
	assert(exit_status_parse("17 (a)" FIELDS "x\n", &status) == -EBADMSG);
	assert(exit_status_parse("17 (a)" FIELDS "-1\n", &status) == -EBADMSG);
	assert(exit_status_parse("17 (a)" FIELDS "65536\n", &status) == -EBADMSG);
	assert(exit_status_parse("17 (a) Z 1 2 768\n", &status) == -EBADMSG);
	assert(exit_status_parse("", &status) == -EBADMSG && status == 5);
}

/* A child that waits until it is told to end by closing @ret_hold. */
static pid_t held_child(int code, int signal_number, int *ret_hold)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		(void)close(ends[1]);
		if (read(ends[0], &byte, 1) != 0)
			_exit(99);
		if (signal_number) {
			/* No core, into a pipe either. An ordinary user may not trace what may not dump. */
			(void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
			(void)signal(signal_number, SIG_DFL);
			(void)raise(signal_number);
		}
		_exit(code);
	}
	(void)close(ends[0]);
	*ret_hold = ends[1];
	return pid;
}

struct ended {
	struct proc proc;
	struct process_id id;
	int pid_fd;
};

/* A child that has ended and was not waited for. */
static void ended_init(struct ended *ended, int code, int signal_number)
{
	siginfo_t info;
	int hold;
	pid_t pid = held_child(code, signal_number, &hold);

	assert(proc_open(&ended->proc) == 0);
	ended->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	ended->id.pid = (uint32_t)pid;
	ended->id.start_ticks = proc_start_ticks(&ended->proc, ended->id.pid);
	assert(ended->pid_fd >= 0 && ended->id.start_ticks);
	(void)close(hold);
	assert(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
}

static int ended_reap(const struct ended *ended)
{
	int status;

	assert(waitpid((pid_t)ended->id.pid, &status, 0) == (pid_t)ended->id.pid);
	return status;
}

static void ended_deinit(struct ended *ended)
{
	(void)close(ended->pid_fd);
	proc_close(&ended->proc);
}

UNIT(a_process_that_was_not_waited_for_has_its_status)
{
	static const struct {
		int code, signal_number;
	} ways[] = {{0, 0}, {3, 0}, {255, 0}, {0, SIGKILL}, {0, SIGSEGV}, {0, SIGTERM}};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct ending ending = {0};
		struct ended ended;

		ended_init(&ended, ways[i].code, ways[i].signal_number);
		assert(exit_status_read(&ended.proc, ended.id, ended.pid_fd, &ending));
		assert(ending.has_status);
		assert(ending.status == ended_reap(&ended));
		ended_deinit(&ended);
	}
}

UNIT(one_that_was_waited_for_has_it_if_the_pidfd_tells)
{
	struct ending ending = {0};
	struct ended ended;
	int expected;
	bool known;

	ended_init(&ended, 0, SIGKILL);
	expected = ended_reap(&ended);
	known = exit_status_read(&ended.proc, ended.id, ended.pid_fd, &ending);
	ended_deinit(&ended);
	if (!known)
		unit_skip("a kernel before 6.15: pidfds do not tell");
	assert(ending.status == expected && ending_signal(&ending) == SIGKILL);
}

UNIT(one_that_lives_has_none)
{
	struct ending ending = {0};
	struct process_id id;
	struct proc proc;
	int hold, status, pid_fd;
	pid_t pid = held_child(0, 0, &hold);

	assert(proc_open(&proc) == 0);
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	id = (struct process_id){(uint32_t)pid, proc_start_ticks(&proc, (uint32_t)pid)};
	assert(!exit_status_read(&proc, id, pid_fd, &ending) && !ending.has_status);
	(void)close(hold);
	assert(waitpid(pid, &status, 0) == pid);
	(void)close(pid_fd);
	proc_close(&proc);
}

UNIT(another_process_of_the_same_number_does_not_count)
{
	struct ending ending = {0};
	struct ended ended;

	ended_init(&ended, 3, 0);
	ended.id.start_ticks++;
	assert(!exit_status_read(&ended.proc, ended.id, ended.pid_fd, &ending) &&
	       !ending.has_status);
	(void)ended_reap(&ended);
	ended_deinit(&ended);
}

UNIT(who_may_not_trace_it_does_not_take_the_kernel_s_0_for_a_status)
{
	struct ending ending = {0};
	struct ended ended;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		unit_skip("only root can become another user");
	ended_init(&ended, 3, 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(9);
		_exit(exit_status_read(&ended.proc, ended.id, ended.pid_fd, &ending) ? 1 : 0);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	(void)ended_reap(&ended);
	ended_deinit(&ended);
}
