/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Exits of processes that are known only from tt-metal's regions. Such a process has no book that
 * would outlive it: all that it leaves is its row in the region, until that is cleared. So each is
 * watched by a pidfd, and when it exits the row is read once more. What the row says then is what
 * the process left; one that had freed everything, or had removed its row, left nothing.
 */

#include <stdint.h>

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
	const struct proc *proc; /* borrowed */
	void *context;
	/* In the loop's thread: a process has ended, call region_watch_see() soon. */
	void (*wake)(void *context);
	/*
	 * In the thread of region_watch_see(): process 0 of @snapshot has ended and left its parts, which
	 * have totals only. The snapshot is finished and lent.
	 */
	void (*ended)(void *context, const struct snapshot *snapshot);
};

int region_watch_new(struct region_watch **ret_watch, const struct region_watch_config *config);

/* From the loop's thread, and not while somebody sees. */
struct region_watch *region_watch_free(struct region_watch *watch);

/* Looks who has come and who has ended. From one thread at a time, not the loop's. */
void region_watch_see(struct region_watch *watch, const struct snapshot *snapshot);

/*
 * The process has or had a book, from which its end is told; its rows are not reported, also after
 * it has executed another program. From any thread.
 */
void region_watch_leave_out(struct region_watch *watch, uint32_t pid, uint64_t start_ticks);

/* In the loop's thread, after each of these. */
void region_watch_settle(struct region_watch *watch);
