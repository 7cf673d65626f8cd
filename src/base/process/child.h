/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runs other programs. Our process may have threads, so no code of its own may run between fork and
 * exec: posix_spawn() does the little that is needed, and the address space is never copied. The
 * exit is reported by a pidfd, in a loop or waited for; SIGCHLD is not used (it must not be ignored
 * either, or the kernel would reap before us).
 *
 * Each child leads its own session, hence a process group that can be killed as a whole. It
 * inherits nothing: no blocked or ignored signals, no descriptors except those named in its setup,
 * and none of the capabilities that a unit file may give to a daemon. One in the foreground is a
 * part of our command: it stays in our session, where the terminal finds it, and has our standard
 * descriptors.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/threads/loop.h"

#define CHILD_FD 3 /* where child_setup.extra arrives */

struct child_setup {
	const char *program;            /* a path, or a name to search for in PATH */
	const char *const *arguments;   /* including the name, terminated by NULL */
	const char *const *environment; /* complete, terminated by NULL; NULL = ours */
	const char *folder;             /* NULL = ours */
	int input;                      /* -1 = /dev/null; in the foreground, ours */
	int extra;                      /* -1 = none; not in the foreground */
	bool keeps_errors;              /* its standard error is ours, else /dev/null */
	bool is_foreground;
	int output; /* of one in the foreground; -1 = ours */
};

struct child {
	/* Public, read-only. */
	pid_t pid;  /* 0 = none */
	int status; /* after child_wait(), as from waitpid() */

	void (*ended)(struct child *child, int status); /* set by the owner; as from waitpid() */

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
 * @loop: where the exit is reported to child->ended(); NULL = nowhere, child_wait() must be called
 *
 * Return: 0 or a negative errno. A program that cannot be executed is an error here, too.
 */
int child_start(struct child *child, struct loop *loop, const struct child_setup *setup);

/* Kills it and its group. The exit is reported as usual. Not for one in the foreground. */
void child_kill(const struct child *child);

/* Lets it run on its own: the exit is not reported. */
void child_forget(struct child *child);

/*
 * Waits for the exit; -1 = without a time-out. Returns whether it exited; then it is not reported,
 * but in status.
 */
bool child_wait(struct child *child, int timeout_ms);

/* Waits for the exit of any child of ours. Returns as waitpid(); -1 if it is not our child. */
int child_reap(pid_t pid);
