/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's snapshots of the machine. Totals are the same for everybody, so one reading serves
 * all callers that were waiting for one: a request is answered by a snapshot that was started after
 * the request arrived. So each book is read by one thread at a time, and no answer is older than
 * its request. A caller that also wants buffers gets a reading of its own.
 *
 * May be used by every thread except the loop's: reading takes as long as the slowest book.
 */

#include <stdint.h>

struct access_peer;
struct collector;
struct proc;
struct book_list;
struct overlap_notes;
struct snapshot;
struct snapshot_request;
struct tracked;

struct collector_config {
	void *context;
	struct book_list *(*book_list)(
		void *context);  /* the current list with a reference; from any thread */
	const struct proc *proc; /* borrowed */
};

int collector_new(struct collector **ret_collector, const struct collector_config *config);
struct collector *collector_free(struct collector *collector);

/*
 * Totals no older than @since_ns (CLOCK_MONOTONIC). The snapshot is shared: never change it, and
 * release it with snapshot_free(). 0 or a negative errno.
 */
int collector_totals(struct collector *collector, uint64_t since_ns,
		     struct snapshot **ret_snapshot);

struct collector_wish {
	const struct snapshot_request *request;
	struct tracked *also; /* a book that is read even if its owner has exited; NULL = none */
	const struct access_peer *asker; /* only books that this client may see; NULL = all */
};

/* A new snapshot that the caller owns. 0 or a negative errno. */
int collector_read(struct collector *collector, const struct collector_wish *wish,
		   struct snapshot **ret_snapshot);

/* What is noted about overlapping memory; whoever finds it sets it. */
struct overlap_notes *collector_overlaps(struct collector *collector);

/* How often totals have been read. */
uint64_t collector_readings(struct collector *collector);

/* The last reading, however old; NULL if there was none. To be freed. */
struct snapshot *collector_latest(struct collector *collector);
