/* SPDX-License-Identifier: Apache-2.0 */

/* Starting the pager that the user likes, and less if nothing is said. */

#include "cli/common/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"

static struct child pager;

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
	const char *const arguments[] = {"sh", "-c", command, NULL};
	struct child_setup setup = {
		.program = "/bin/sh", .arguments = arguments, .is_foreground = true, .output = -1};
	CLEANUP_CLOSE int reading = -1;
	CLEANUP_CLOSE int writing = -1;
	int ends[2];

	if (!command || pager.pid || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	setup.input = reading = ends[0];
	writing = ends[1];
	/* Ends at once if all fits, keeps colours, leaves the screen as it is. */
	(void)setenv("LESS", "FRX", 0); /* without memory for it the pager does as it likes */
	pager = CHILD_NULL;
	if (child_start(&pager, NULL, &setup) < 0)
		return false;
	(void)fflush(stdout);               /* nothing was written yet */
	(void)dup2(writing, STDOUT_FILENO); /* fails only for a bad descriptor */
	signal(SIGINT, SIG_IGN);            /* Ctrl-C is the pager's */
	return true;
}

void pager_close(void)
{
	if (!pager.pid)
		return;
	(void)fclose(stdout); /* what could not be written nobody wanted to see */
	(void)child_wait(&pager, -1);
}
