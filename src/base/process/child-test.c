/* SPDX-License-Identifier: Apache-2.0 */

/* What a child has and has not, how its end is told, and what is killed with it. */

#include "base/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/testing/unit.h"

static struct loop *loop;
static int told = -1;

static void note_end(struct child *child, int status)
{
	assert(child->pid == 0);
	told = status;
}

static int start(struct child *child, struct loop *in, const char *script, int input, int extra)
{
	const char *const arguments[] = {"sh", "-c", script, NULL};
	static const char *const environment[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
	const struct child_setup setup = {
		.program = "/bin/sh",
		.arguments = arguments,
		.environment = environment,
		.folder = "/",
		.input = input,
		.extra = extra,
		.keeps_errors = true,
	};

	*child = CHILD_NULL;
	child->ended = note_end;
	return child_start(child, in, &setup);
}

/* How a script ends that is started without anything. */
static int run(const char *script)
{
	struct child child;

	assert(start(&child, NULL, script, -1, -1) == 0 && child.pid > 0);
	assert(child_wait(&child, -1) && child.pid == 0);
	return child.status;
}

UNIT(the_end_is_told_in_the_loop)
{
	struct child child;

	assert(loop_new(&loop) == 0);
	assert(start(&child, loop, "exit 7", -1, -1) == 0);
	while (told < 0)
		assert(loop_turn(loop, -1) == 0);
	assert(WIFEXITED(told) && WEXITSTATUS(told) == 7);
	loop = loop_free(loop);
}

UNIT(without_a_loop_the_end_is_waited_for)
{
	int status = run("exit 7");

	assert(WIFEXITED(status) && WEXITSTATUS(status) == 7 && told < 0);
}

UNIT(a_program_that_is_not_there_is_told_at_once)
{
	static const char *const arguments[] = {"nothing", NULL};
	struct child_setup setup = {
		.program = "/does/not/exist", .arguments = arguments, .input = -1, .extra = -1};
	struct child child = CHILD_NULL;

	assert(child_start(&child, NULL, &setup) == -ENOENT && child.pid == 0);
	/* A folder in PATH that we may not enter would give -EACCES. */
	assert(setenv("PATH", "/bin", 1) == 0); /* NOLINT(concurrency-mt-unsafe): no other thread */
	setup.program = "ttmem-no-such-program";
	assert(child_start(&child, NULL, &setup) == -ENOENT && child.pid == 0);
	assert(child_wait(&child, 0)); /* there is none to wait for */
}

UNIT(only_named_descriptors_and_variables_are_passed_on)
{
	CLEANUP_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* Neither is close-on-exec; above the number at which the extra one arrives. */
	CLEANUP_CLOSE int open_file = fcntl(null, F_DUPFD, CHILD_FD + 1);
	CLEANUP_CLOSE int high_file = fcntl(null, F_DUPFD, 40);
	int input[2], extra[2];
	char byte;
	struct child child;

	assert(open_file > CHILD_FD && open_file < 10 && high_file == 40 &&
	       pipe2(input, O_CLOEXEC) == 0 && pipe2(extra, O_CLOEXEC) == 0);
	assert(start(&child, NULL,
		     "read word && [ \"$word\" = hello ] && echo there >&3 && "
		     "for fd in 4 5 6 7 8 9 40; do [ ! -e /proc/$$/fd/$fd ] || exit 1; done; "
		     "[ \"$ONLY\" = this ] && [ -z \"$HOME\" ] && [ \"$PWD\" = / ]",
		     input[0], extra[1]) == 0);
	assert(write(input[1], "hello\n", 6) == 6);
	assert(child_wait(&child, -1) && child.status == 0);
	assert(read(extra[0], &byte, 1) == 1); /* it has arrived at CHILD_FD */
	for (size_t i = 0; i < 2; i++) {
		close(input[i]);
		close(extra[i]);
	}
}

UNIT(without_an_extra_descriptor_there_is_none)
{
	CLEANUP_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int saved = fcntl(CHILD_FD, F_DUPFD_CLOEXEC, 10);

	assert(null >= 0 && saved >= 0 && dup2(null, CHILD_FD) == CHILD_FD);
	assert(fcntl(CHILD_FD, F_SETFD, 0) == 0); /* not close-on-exec */
	assert(run("[ ! -e /proc/$$/fd/3 ] && [ -z \"$(cat)\" ] && "
		   "[ \"$(readlink /proc/$$/fd/0)\" = /dev/null ] && "
		   "[ \"$(readlink /proc/$$/fd/1)\" = /dev/null ]") == 0);
	assert(dup3(saved, CHILD_FD, O_CLOEXEC) == CHILD_FD);
}

/* Numbers that are about to be replaced are moved out of the way. */
UNIT(an_input_at_the_number_of_the_extra_one)
{
	CLEANUP_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CLEANUP_CLOSE int saved = -1;
	struct child child;
	int ends[2];

	assert(null >= 0 && pipe2(ends, O_CLOEXEC) == 0);
	saved = fcntl(CHILD_FD, F_DUPFD_CLOEXEC, 10);
	assert(saved >= 0 && dup3(ends[0], CHILD_FD, O_CLOEXEC) == CHILD_FD);
	assert(write(ends[1], "hello\n", 6) == 6);
	assert(start(&child, NULL, "read word && [ \"$word\" = hello ] && echo >&3", CHILD_FD,
		     null > CHILD_FD ? null : saved) == 0);
	assert(child_wait(&child, -1) && child.status == 0);
	assert(dup3(saved, CHILD_FD, O_CLOEXEC) == CHILD_FD);
	close(ends[1]);
	if (ends[0] != CHILD_FD)
		close(ends[0]);
}

UNIT(a_session_of_its_own_and_no_signal_of_ours)
{
	char path[64], text[4096];
	struct child child;
	sigset_t blocked;
	uint64_t ignored;
	int ends[2];

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	assert(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0 && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(start(&child, NULL, "read word", ends[0], -1) == 0);
	assert(getsid(child.pid) == child.pid && getpgid(child.pid) == child.pid);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)child.pid);
	assert(small_file_read(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert(strstr(text, "SigBlk:\t0000000000000000\n") && strstr(text, "SigIgn:"));
	/* libc ignores two of its own. */
	assert(sscanf(strstr(text, "SigIgn:"), "SigIgn: %" SCNx64, &ignored) == 1);
	assert(!(ignored & UINT64_C(1) << (SIGUSR2 - 1)));
	close(ends[1]);
	assert(child_wait(&child, -1) && child.status != 0);
	close(ends[0]);
}

UNIT(killing_ends_the_whole_group)
{
	struct child child;
	int ends[2];
	char byte;

	/* Both hold the writing end: only when both are gone is there an end to be read. */
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(start(&child, NULL, "sleep 1000 & echo >&3; wait", -1, ends[1]) == 0);
	close(ends[1]);
	assert(read(ends[0], &byte, 1) == 1);
	assert(!child_wait(&child, 0));
	child_kill(&child);
	assert(child_wait(&child, -1) && WIFSIGNALED(child.status));
	assert(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
}

UNIT(one_in_the_foreground_shares_our_session)
{
	static const char *const arguments[] = {"cat", NULL};
	struct child_setup setup = {
		.program = "cat", .arguments = arguments, .is_foreground = true};
	struct child child = CHILD_NULL;
	int input[2], output[2];
	char text[64];

	assert(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
	setup.input = input[0];
	setup.output = output[1];
	assert(child_start(&child, NULL, &setup) == 0 && getsid(child.pid) == getsid(0));
	close(input[0]);
	close(output[1]);
	assert(write(input[1], "hello", 5) == 5);
	close(input[1]);
	assert(small_file_read_fd(output[0], text, sizeof(text)) == 5);
	assert(strcmp(text, "hello") == 0);
	assert(child_wait(&child, -1) && child.status == 0);
	close(output[0]);
}

UNIT(one_that_is_forgotten_is_not_told)
{
	struct child child;
	pid_t pid;

	assert(loop_new(&loop) == 0);
	assert(start(&child, loop, "exit 7", -1, -1) == 0);
	pid = child.pid;
	child_forget(&child);
	assert(child.pid == 0);
	assert(WEXITSTATUS(child_reap(pid)) == 7);
	assert(loop_turn(loop, 0) == 0 && told < 0);
	assert(child_reap(pid) == -1); /* none of ours any more */
	loop = loop_free(loop);
}
