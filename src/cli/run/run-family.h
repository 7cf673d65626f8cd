/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The family of a command under `ttmem run`: the command, all its descendants, and their books.
 * Books are handed over on a private socket as soon as they are created, so that the final state of
 * even the shortest-lived descendant is read; a book is judged when its process ends (or calls
 * exec), and then released.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/ending.h"
#include "cli/run/run-failed.h"
#include "cli/run/run-peaks.h"
#include "model/snapshot.h"
#include "source/books/accept.h"
#include "source/proc/proc.h"

struct family_end {
	uint32_t process; /* index in the snapshot */
	uint32_t pid;
	struct ending ending;
};

/* The most held at one time by all processes: exact for one process, sampled for several. */
struct family_peak {
	uint64_t bytes;
	uint32_t processes;
	bool sampled;
	bool is_bound; /* something of it went unrecorded */
};

struct run_black_box;
struct run_children;
struct run_record;

struct family {
	bool strict_close; /* what was live when its device was closed counts; set before family_run() */
	const char *shim; /* a library to preload, or NULL; not owned, set before family_run() */
	struct run_record *record;       /* NULL = none; not owned, set before family_run() */
	struct run_black_box *black_box; /* likewise */

	/* Results, valid once family_run() has returned. */
	struct snapshot *ended; /* what ended processes held; none of them is alive */
	struct family_end *ends;
	size_t end_count, end_capacity;
	uint32_t without_book;  /* descendants that were seen and never handed over a book */
	uint32_t untracked;     /* of these, with a device open or tt-metal mapped */
	uint32_t still_running; /* with a book, not judged */
	uint32_t refused;
	const char *refused_reason; /* of the last refusal */
	struct ending command;
	const char *gave_up; /* why the tracking of one of them is incomplete; NULL = it is not */
	uint32_t gave_up_pid;
	int trouble; /* a negative errno: not everything could be tracked */
	struct family_peak peak[BOOK_DEVICES][BOOK_TYPES];
	struct run_peaks peaks; /* what was live then */
	struct run_failed failed;

	/* Private. */
	struct proc proc;
	struct rlimit files; /* as it was before we raised it */
	bool crowded;        /* out of descriptors: no new connection until a process has ended */
	pid_t child;
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

/*
 * Runs @argv with tracking on until it ends. 0 or a negative errno (-ENOENT etc.: cannot be run).
 */
int family_run(struct family *family, const char *const *argv);

/*
 * The same in steps, for a family whose members the caller forks: open (children must restore the
 * previous signal mask and get family->path in TTMEM_OFFER), any number of steps, finish.
 */
int family_open(struct family *family, sigset_t *ret_before);

/* Waits up to @timeout_ms for events and handles them. */
int family_step(struct family *family, int timeout_ms);

/*
 * Handles what is left in the socket and processes that are just ending, then computes the results.
 */
int family_finish(struct family *family);

/* Adds the live processes to @snapshot. */
int family_collect(struct family *family, const struct snapshot_request *request,
		   struct snapshot *snapshot);
