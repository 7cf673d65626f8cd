/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One case, one child. A case may do anything, including hanging, crashing and leaving daemons
 * behind, and the next one still starts from the same clean state:
 *
 *  - the child leads a process group, which is killed when the case ends, for whatever reason;
 *  - the runner is a subreaper, so that what left the group (setsid) becomes its own child and is
 *    killed as well;
 *  - the child's folder is removed by the runner, not by the child;
 *  - the child dies with the runner (PR_SET_PDEATHSIG), so that nothing survives a Ctrl-C.
 *
 * A case reports its outcome by exit status: 0 passed, EXIT_SKIP skipped, EXIT_FDS descriptors
 * differ, everything else failed. The reason for a skip is the last line that it printed.
 */

#include "base/testing/unit-run.h"

#include "base/testing/unit-sweep.h"
#include "base/testing/unit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

enum {
	EXIT_SKIP = 77, /* understood by meson and automake */
	EXIT_FDS = 78,
	EXIT_START = 79,
};

static char *unit_folder;
static int unit_more_fds;
static sigset_t unit_mask; /* the signal mask that the program was started with */

_Noreturn void unit_skip(const char *reason)
{
	(void)fflush(stdout); /* best effort: keeps the lines in order */
	fprintf(stderr, "%s\n", reason);
	exit(EXIT_SKIP);
}

void unit_expect_fds(int n)
{
	unit_more_fds = n;
}

const char *unit_dir(void)
{
	return unit_folder;
}

const char *unit_path(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];
	int n = snprintf(path, sizeof(paths[0]), "%s/%s", unit_folder, name);

	assert(n > 0 && (size_t)n < sizeof(paths[0]));
	return path;
}

int unit_run_init(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, &unit_mask) < 0)
		return -errno;
	/* qemu's user emulation cannot do this; then only the process group is swept. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);

	return 0;
}

static double unit_now(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

static void unit_child_io(int output)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		exit(EXIT_START);
	if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0))
		exit(EXIT_START);
	close(null);
	if (output >= 0)
		close(output);
}

static _Noreturn void unit_child(const struct unit_case *unit, pid_t runner, int output)
{
	struct rlimit core;

	setpgid(0, 0);
	/* The runner may have died between fork and prctl; then nobody would send the signal. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != runner)
		exit(EXIT_START);
	sigprocmask(SIG_SETMASK, &unit_mask, NULL);
	unit_child_io(output);

	/* Only the soft limit: a case about core dumps may raise it again. */
	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &core); /* a core file is a nuisance, not an error */
	}

	unit_run_here(unit);
	exit(EXIT_SUCCESS);
}

void unit_run_here(const struct unit_case *unit)
{
	struct unit_fds *before, *after;
	bool same;

	if (!unit_folder)
		unit_folder = unit_sweep_folder_new(); /* without a fork: stays, to be inspected */
	unit_sweep_environment(unit_folder);
	before = unit_fds_new();
	unit->run();
	after = unit_fds_new();
	(void)fflush(stdout); /* best effort: keeps the lines in order */
	same = unit_more_fds == UNIT_FDS_ANY || unit_fds_compare(before, after, unit_more_fds);
	unit_fds_free(before);
	unit_fds_free(after);
	if (!same)
		exit(EXIT_FDS);
}

/*
 * Waits until @pid has ended or @seconds have passed.
 * Return: true and @ret_status if it ended, false if time is up.
 */
static bool unit_wait(pid_t pid, double seconds, int *ret_status)
{
	double deadline = unit_now() + seconds;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		double left = deadline - unit_now();
		struct timespec pause;

		if (waitpid(pid, ret_status, WNOHANG) == pid)
			return true;
		if (left <= 0)
			return false;
		pause.tv_sec = (time_t)left;
		pause.tv_nsec = (long)((left - (double)pause.tv_sec) * 1e9);
		/* Any outcome is fine: the loop checks again. */
		(void)sigtimedwait(&child, NULL, &pause);
	}
}

/* Turns a wait status into an outcome; for a failure, @ret_result->why says what happened. */
static void unit_judge(const struct unit_case *unit, int status, struct unit_result *ret_result)
{
	bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;

	if (aborted == unit->must_abort && (aborted || status == 0)) {
		ret_result->outcome = UNIT_PASSED;
		return;
	}

	ret_result->outcome = UNIT_FAILED;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
		ret_result->outcome = UNIT_SKIPPED;
	} else if (WIFSIGNALED(status)) {
		snprintf(ret_result->why, sizeof(ret_result->why), "killed by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) == EXIT_FDS) {
		snprintf(ret_result->why, sizeof(ret_result->why), "file descriptors differ");
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(ret_result->why, sizeof(ret_result->why), "exited with %d",
			 WEXITSTATUS(status));
	} else {
		snprintf(ret_result->why, sizeof(ret_result->why), "should have aborted");
	}
}

void unit_run(const struct unit_case *unit, unsigned int patience, bool verbose,
	      struct unit_result *ret_result)
{
	double limit = (double)unit->seconds * patience, start = unit_now();
	pid_t runner = getpid(), pid;
	int output, status = 0;
	bool ended;

	*ret_result = (struct unit_result){.outcome = UNIT_FAILED};
	unit_folder = unit_sweep_folder_new();
	output = verbose ? -1 : unit_sweep_output_new(unit_folder);
	if (!unit_folder || (!verbose && output < 0)) {
		snprintf(ret_result->why, sizeof(ret_result->why), "no temporary folder: %s",
			 strerror(errno));
		unit_folder = unit_sweep_folder_free(unit_folder);
		return;
	}

	pid = fork();
	if (pid == 0)
		unit_child(unit, runner, output);
	if (pid < 0) {
		snprintf(ret_result->why, sizeof(ret_result->why), "fork: %s", strerror(errno));
	} else {
		setpgid(pid, pid); /* in both processes, so that it holds whichever runs first */
		ended = unit_wait(pid, limit, &status);
		unit_sweep_children(pid);
		if (ended)
			unit_judge(unit, status, ret_result);
		else
			snprintf(ret_result->why, sizeof(ret_result->why), "not done after %.0f s",
				 limit);
	}

	ret_result->seconds = unit_now() - start;
	if (ret_result->outcome == UNIT_SKIPPED && output >= 0)
		unit_sweep_last_line(output, ret_result->why, sizeof(ret_result->why));
	if (ret_result->outcome == UNIT_FAILED && output >= 0)
		unit_sweep_show(output);
	if (output >= 0)
		close(output);
	unit_folder = unit_sweep_folder_free(unit_folder);
}
