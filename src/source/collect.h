/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one function that puts a picture of the machine together: books, what the kernel module tells of
 * processes without one, the driver's cards and who has them open, tt-metal's regions, and what only the daemon
 * may read. Every tool and every part of the daemon that shows more than one process's book calls it, so
 * that no two of them can disagree about who is there. Whoever calls says where books come from; all
 * other origins are files that anybody finds by himself.
 */

#include "source/host/kernel.h"

struct proc;
struct daemon_client;
struct scan;
struct snapshot;
struct source;
struct snapshot_request;

struct collect_sources {
	struct source *books;

	/* Whether @books tells of a holder that the kernel module names as well. */
	kernel_knows_fn *knows;
	const void *known; /* handed to knows() */
	const struct proc *proc;

	/* The command's: who may read regions that we may not; NULL = nobody. */
	struct daemon_client *remote;
	/* The command's: explains a snapshot without any process; NULL = nobody asks. */
	const struct scan *scan;
};

/* A finished snapshot, which is the caller's. 0 or a negative errno. From any thread, if @sources may be used there. */
int collect_machine(const struct collect_sources *sources, const struct snapshot_request *request,
		    struct snapshot **ret_snapshot);
