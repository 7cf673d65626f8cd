/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's pictures of the machine. Totals are the same for everybody, so one reading serves all who
 * were waiting for one: a question is answered by a snapshot that was begun after the question had come.
 * So each book is read at most once at a time, and nobody is told something older than the question.
 * Whoever wants buffers as well has a reading of its own.
 *
 * May be used by all threads but the loop's: reading takes as long as the slowest book does.
 */

#include <stdint.h>

struct access_peer;
struct collector;
struct proc;
struct book_list;
struct snapshot;
struct snapshot_request;
struct tracked;

struct collector_config {
	void *context;
	struct book_list *(*book_list)(
		void *context);  /* the current list, counted; from any thread */
	const struct proc *proc; /* only lent */
};

int collector_new(struct collector **ret_collector, const struct collector_config *config);
struct collector *collector_free(struct collector *collector);

/*
 * The totals of a moment not before @since_ns (CLOCK_MONOTONIC). The snapshot is shared: to be let go
 * with snapshot_free(), never to be changed. 0 or a negative errno.
 */
int collector_totals(struct collector *collector, uint64_t since_ns,
		     struct snapshot **ret_snapshot);

struct collector_wish {
	const struct snapshot_request *request;
	struct tracked
		*also; /* a book that is looked at even if its owner has ended; NULL = none */
	const struct access_peer *asker; /* only books that this one may see; NULL = all */
};

/* A snapshot of this moment that is the caller's. 0 or a negative errno. */
int collector_read(struct collector *collector, const struct collector_wish *wish,
		   struct snapshot **ret_snapshot);

/* How often totals were read. */
uint64_t collector_readings(struct collector *collector);
