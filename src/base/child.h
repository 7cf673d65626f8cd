/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Other programs. A process of ours may have threads, so nothing of its own may run between fork and
 * exec: posix_spawn() does the little that is needed, and the address space is never copied. The end is a
 * pidfd, in a loop or waited for; SIGCHLD is not used (it must not be ignored either, or the kernel would
 * reap before us).
 *
 * Each child leads a session of its own, hence a process group that can be killed as a whole. It has
 * nothing of ours: no signal that is blocked or ignored, no descriptor but those named in its setup, and none of the
 * capabilities that a unit file may give to a daemon. One in the foreground is a part of our command: it
 * stays in our session, where the terminal finds it, and has our standard descriptors.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"

#define CHILD_FD 3 /* where child_setup.extra arrives */

struct child_setup {
	const char *program;            /* a path, or a name that is searched for in PATH */
	const char *const *arguments;   /* from the name on, ended by NULL */
	const char *const *environment; /* all of it, ended by NULL; NULL = ours */
	const char *folder;             /* NULL = ours */
	int input;                      /* -1 = /dev/null; in the foreground ours */
	int extra;                      /* -1 = none; not in the foreground */
	bool keeps_errors;              /* its standard error is ours, else /dev/null */
	bool is_foreground;
	int output; /* of one in the foreground; -1 = ours */
};

struct child {
	/* For others to read. */
	pid_t pid;  /* 0 = there is none */
	int status; /* after child_wait(), as from waitpid() */

	void (*ended)(struct child *child, int status); /* the owner's; status as from waitpid() */

	/* Private. */
	struct loop *loop;
	struct loop_source end;
};

#define CHILD_NULL                 \
	(struct child)             \
	{                          \
		.end = {.fd = -1 } \
	}

/**
 * child_start() - start a program
 * @loop: where the end is told to child->ended(); NULL = to nobody, and child_wait() is to be called
 *
 * Return: 0 or a negative errno. That the program could not be executed is told here, too.
 */
int child_start(struct child *child, struct loop *loop, const struct child_setup *setup);

/* Kills it and all of its group. The end is told as any other. Not for one in the foreground. */
void child_kill(const struct child *child);

/* Lets it run without us: the end is told to nobody. */
void child_forget(struct child *child);

/* Waits for the end, -1 = as long as it takes. Return: whether it came; then it is not told, but in status. */
bool child_wait(struct child *child, int timeout_ms);

/* Waits for the end of any process that we have made. Return: as from waitpid(), -1 if it is none of ours. */
int child_reap(pid_t pid);
