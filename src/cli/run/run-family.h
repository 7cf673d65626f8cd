/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The family of a command under `ttmem run`: the command, everything it starts, and their books. Books
 * are handed over on a private socket the moment they are made, so that of even the shortest-lived
 * descendant the last state is read; a book is judged when its process ends (or execs), and let go.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "model/snapshot.h"
#include "source/books/accept.h"
#include "source/proc/proc.h"

/* How a process ended, as far as we know. */
struct family_end {
	uint32_t process; /* index in the snapshot */
	uint32_t pid;
	uint64_t ended_ns;
	bool closed;       /* its library said goodbye */
	bool execed;       /* another program took its place */
	bool status_known; /* then as waitpid() gives it */
	int status;
};

/* The most that was held at one time, over all processes: exact for one process, sampled for more. */
struct family_peak {
	uint64_t bytes;
	uint32_t processes;
	bool sampled;
};

struct run_children;

struct family {
	const char *shim; /* a library to preload, or NULL: the caller's, set before family_run() */

	/* Others may read this once family_run() has returned. */
	struct snapshot *ended; /* what those held who have ended; "dead" processes all of them */
	struct family_end *ends;
	size_t end_count, end_capacity;
	uint32_t without_book;  /* descendants that were seen and never handed over a book */
	uint32_t still_running; /* with a book, not judged */
	uint32_t refused;
	const char *refused_reason; /* of the last one */
	int status;                 /* of the command */
	int trouble;                /* a negative errno: not everything could be watched */
	struct family_peak peak[BOOK_DEVICES][BOOK_TYPES];

	/* Private. */
	struct proc proc;
	struct rlimit files; /* as it was before we raised it */
	bool crowded;        /* out of descriptors: nobody is let in until somebody has ended */
	pid_t child;
	bool child_over;
	int listening;
	int signals;
	char folder[64];
	char path[80];
	struct accept_peer **peers;
	size_t peer_count, peer_capacity;
	struct run_children *run_children;
	uint64_t sampled_ns;
};

struct snapshot_request;

int family_new(struct family **ret_family);
struct family *family_free(struct family *family);

/* Runs @argv with tracking on until it ends. 0 or a negative errno (-ENOENT etc.: cannot be run). */
int family_run(struct family *family, const char *const *argv);

/*
 * The same in pieces, for a family whose members are forked by the caller: open (children must restore
 * the signal mask that was before, and find family->path in TTMEM_OFFER), any number of steps, finish.
 */
int family_open(struct family *family, sigset_t *ret_before);

/* Waits up to @timeout_ms for something to happen, and attends to it. */
int family_step(struct family *family, int timeout_ms);

/* Attends to what is still in the socket and those who are just ending; then sums up. */
int family_finish(struct family *family);

/* Adds those who are alive to @snapshot. */
int family_collect(struct family *family, const struct snapshot_request *request,
		   struct snapshot *snapshot);
