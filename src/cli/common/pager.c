/* SPDX-License-Identifier: Apache-2.0 */

/* Starts the user's pager, or less if none is set. */

#include "cli/common/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/child.h"

static struct child pager;

/* The command, NULL = none. */
static const char *pager_choose(void)
{
	const char *chosen = getenv("TTMEM_PAGER");

	if (!chosen)
		chosen = getenv("PAGER");
	if (!chosen)
		/* Without less, the output must still appear. */
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
	reading = ends[0];
	setup.input = reading;
	writing = ends[1];
	/* Exit at once if everything fits, keep colours, do not clear the screen. */
	(void)setenv("LESS", "FRX", 0); /* on failure the pager uses its defaults */
	pager = CHILD_NULL;
	if (child_start(&pager, NULL, &setup) < 0)
		return false;
	(void)fflush(stdout);               /* nothing was written yet */
	(void)dup2(writing, STDOUT_FILENO); /* fails only for a bad descriptor */
	signal(SIGINT, SIG_IGN);            /* Ctrl-C belongs to the pager */
	return true;
}

void pager_close(void)
{
	if (!pager.pid)
		return;
	(void)fclose(stdout); /* fails if the user quit the pager early */
	(void)child_wait(&pager, -1);
}
