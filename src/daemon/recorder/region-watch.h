/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Exits of processes that are known only from tt-metal's regions. Such a process has no book that
 * would outlive it: all that it leaves is its row in the region, until that is cleared. So each is
 * watched by a pidfd, and when it exits the row is read once more. What the row says then is what
 * the process left; one that had freed everything, or had removed its row, left nothing.
 */

#include <stdint.h>

#include "base/ending.h"
#include "base/process-id.h"

struct loop;
struct proc;
struct region_watch;
struct snapshot;
struct worker;

#define REGION_WATCH_MAX 8192u /* processes; 64 in each of 128 regions */
#define REGION_WATCH_FDS \
	1024u /* of them with a pidfd; the ends of others are seen with the next snapshot */

struct region_watch_config {
	struct loop *loop;
	const struct proc *proc;             /* borrowed */
	const struct namespaces *namespaces; /* likewise; NULL = nobody's are known */
	void *context;
	/* In the loop's thread: a process has ended, call region_watch_see() soon. */
	void (*wake)(void *context);
	/*
	 * Called by region_watch_see() in its thread: process 0 of @snapshot has ended, and the snapshot
	 * holds what it left, as totals only. The snapshot is finished; it is freed afterwards.
	 */
	void (*ended)(void *context, const struct snapshot *snapshot, const struct ending *ending);
};

int region_watch_new(struct region_watch **ret_watch, const struct region_watch_config *config);

/* From the loop's thread, and not during region_watch_see(). */
struct region_watch *region_watch_free(struct region_watch *watch);

/* Finds new processes and ended ones. From one thread at a time, never the loop's. */
void region_watch_see(struct region_watch *watch, const struct snapshot *snapshot);

/*
 * The process has or had a book, and the report of its end is made from that. Its rows are never
 * reported, not even after it has executed another program. From any thread.
 */
void region_watch_leave_out(struct region_watch *watch, struct process_id process);

/* In the loop's thread, after each call of region_watch_see(). */
void region_watch_settle(struct region_watch *watch);
