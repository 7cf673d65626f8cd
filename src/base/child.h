/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Other programs that we start. We may have threads, so nothing of our own may run between fork and
 * exec: posix_spawn() does the little that is needed, and the address space is never copied. The
 * end is a pidfd in the loop; nobody waits for a child, and SIGCHLD is not used (it must not be ignored
 * either, or the kernel would reap before us).
 *
 * Each child leads a session of its own, hence a process group that can be killed as a whole. It has
 * nothing of ours: no signal that is blocked or ignored, no descriptor but those named in its setup, and none of the
 * capabilities that a unit file may give to the daemon.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"

#define CHILD_FD 3 /* where child_setup.extra arrives */

struct child_setup {
	const char *program;            /* a path: it is not searched for */
	const char *const *arguments;   /* from the name on, ended by NULL */
	const char *const *environment; /* all of it, ended by NULL */
	const char *folder;             /* NULL = ours */
	int input;                      /* -1 = /dev/null */
	int extra;                      /* -1 = none */
	bool keeps_errors;              /* its standard error is ours, else /dev/null */
};

struct child {
	/* For others to read. */
	pid_t pid; /* 0 = there is none */

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

/*
 * @loop: NULL = the end is told to nobody but child_wait(). 0 or a negative errno. That the program could not
 * be executed is told here, too.
 */
int child_start(struct child *child, struct loop *loop, const struct child_setup *setup);

/* Kills it and all of its group. The end is told as any other. */
void child_kill(const struct child *child);

/* Lets it run without us: the end is told to nobody. */
void child_forget(struct child *child);

/* Waits for the end of one that ends by itself. Return: whether it came, and then it is not told. */
bool child_wait(struct child *child, int timeout_ms);
