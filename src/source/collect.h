/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one function that assembles a snapshot of the machine: books, what the kernel module reports
 * about processes without one, the driver's cards and who has them open, tt-metal's regions, and
 * what only the daemon may read. Every tool and every part of the daemon that shows more than one
 * process's book calls it, so that no two of them can disagree. The caller says where books come
 * from; all other sources are files at well-known paths.
 */

#include "source/host/kernel.h"

struct card_watch;
struct proc;
struct daemon_client;
struct scan;
struct snapshot;
struct source;
struct snapshot_request;

struct collect_sources {
	struct source *books;

	/* Whether @books includes a holder that the kernel module names as well. */
	kernel_knows_fn *knows;
	const void *known; /* passed to knows() */
	const struct proc *proc;

	/* What the caller remembers of cards; NULL = nothing. */
	struct card_watch *cards;

	/* For the command: may read regions that we may not; NULL = none. */
	struct daemon_client *remote;
	/* For the command: buffers of different processes are compared if there are any. */
	bool notes_overlaps;
	/* A recording: nothing of this machine is in it, and the moment is this one. */
	bool is_recorded;
	uint64_t recorded_ns; /* CLOCK_REALTIME */
	/* For the command: explains a snapshot without any process; NULL = no explanation. */
	const struct scan *scan;
};

/*
 * Returns 0 and a finished snapshot, owned by the caller, or a negative errno. May be called on any
 * thread on which @sources may be used.
 */
int collect_machine(const struct collect_sources *sources, const struct snapshot_request *request,
		    struct snapshot **ret_snapshot);
