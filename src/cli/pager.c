/* SPDX-License-Identifier: Apache-2.0 */

/* Starting the pager that the user likes, and less if nothing is said. */

#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static pid_t pager_pid; /* 0 = none */

/* The command, NULL = none. */
static const char *pager_choose(void)
{
	const char *chosen = getenv("TTMEM_PAGER");

	if (!chosen)
		chosen = getenv("PAGER");
	if (!chosen)
		/* If less is not there, what was meant for it must not be lost. */
		chosen = "if command -v less >/dev/null; then exec less; else exec cat; fi";
	return *chosen && strcmp(chosen, "cat") != 0 ? chosen : NULL;
}

bool pager_open(void)
{
	const char *command = pager_choose();
	char shell[] = "sh", option[] = "-c";
	posix_spawn_file_actions_t actions;
	CLEANUP_CLOSE int reading = -1;
	CLEANUP_CLOSE int writing = -1;
	CLEANUP_FREE char *words = command ? strdup(command) : NULL;
	char *const arguments[] = {shell, option, words, NULL};
	int ends[2], r;

	if (!words || pager_pid || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	reading = ends[0];
	writing = ends[1];
	/* Ends at once if all fits, keeps colours, leaves the screen as it is. */
	(void)setenv("LESS", "FRX", 0); /* without memory for it the pager does as it likes */
	if (posix_spawn_file_actions_init(&actions) != 0)
		return false;
	r = posix_spawn_file_actions_adddup2(&actions, reading, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn(&pager_pid, "/bin/sh", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0) {
		pager_pid = 0;
		return false;
	}
	(void)fflush(stdout);               /* nothing was written yet */
	(void)dup2(writing, STDOUT_FILENO); /* fails only for a bad descriptor */
	signal(SIGINT, SIG_IGN);            /* Ctrl-C is the pager's */
	return true;
}

void pager_close(void)
{
	if (!pager_pid)
		return;
	(void)fclose(stdout); /* what could not be written nobody wanted to see */
	while (waitpid(pager_pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager_pid = 0;
}
