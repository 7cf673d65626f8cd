/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A book that the daemon knows, and the list of all of them.
 *
 * The loop owns the list; other threads read books too, and must not make the loop wait. So a tracked
 * book is counted by references, what identifies it never changes after it was made, and its reader is
 * used under its own lock. A roster is the list of one moment and never changes: whoever wants to read
 * all books takes the current one and lets it go again.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/books/scan.h"

struct snapshot;
struct snapshot_process;
struct snapshot_request;
struct tracked_before;
struct view;

enum tracked_end {
	TRACKED_LIVES = 0,
	TRACKED_DIED = 1,
	TRACKED_EXECED = 2, /* the process goes on as another program */
};

#define TRACKED_COMM_SIZE sizeof(((struct proc_facts *)NULL)->comm)

struct tracked {
	/* Never changes: anybody may read. */
	dev_t device;
	ino_t inode;
	uint32_t pid;
	uint64_t start_ticks;
	uint32_t maker;    /* user who made the book: who may see its details */
	uint32_t user;     /* real user of the process when it was first seen */
	uint32_t source;   /* enum book_source */
	bool is_older;     /* than the daemon: what it had counted by the first look is no news */
	uint64_t since_ns; /* CLOCK_REALTIME when we learnt of it */
	char comm[TRACKED_COMM_SIZE];

	uint32_t refs; /* atomic */
	uint32_t end;  /* enum tracked_end; atomic */

	/*
	 * For the book: it may be held for as long as reading takes, so never waited for by the loop.
	 * What the book says of its owner and container never changes and needs no lock.
	 */
	pthread_mutex_t book_lock;
	struct scan_book *book;
	bool was_slow;                 /* by the clock, or by our own time if it was slow before */
	bool has_before;               /* an older one was looked at: see `before` */
	uint64_t rest_ns;              /* how long it was left alone the last time */
	uint64_t rest_until;           /* CLOCK_MONOTONIC: until then its totals are not read */
	struct tracked_before *before; /* what it had counted, by device */
	size_t before_count;

	/* Of its stacks, those before this one have been asked for; the learner's alone. */
	uint32_t stacks_seen;

	/* The past's: which incidents it has told already. Taken before the lock above. */
	pthread_mutex_t incident_lock;
	struct tracked_told {
		uint64_t key;
		uint64_t count; /* of what is in the store */
		uint64_t told;  /* of what was told to people */
	} * told;
	size_t told_count, told_capacity;
	uint64_t signature; /* of the counters that change with every incident */
	bool is_hurried;    /* atomic: somebody will look soon */
};

/* Takes the book in any case. NULL: no memory. @since: CLOCK_MONOTONIC; a book made before is an older one. */
struct tracked *tracked_new_consume(struct scan_book *book, uint64_t since);
struct tracked *tracked_ref(struct tracked *tracked);
struct tracked *tracked_unref(struct tracked *tracked);

/*
 * book_collect() under the lock. @view is only lent. A living process whose totals took far more time
 * than those of any honest one is left alone for longer and longer, so that it costs the others nothing:
 * it is then in the snapshot, but not exact and without totals.
 */
int tracked_collect(struct tracked *tracked, const struct snapshot_request *request,
		    struct view *view, struct snapshot *snapshot);

/*
 * The row of its owner in a snapshot of everybody, NULL if there is none. @hint: where that of the book before it
 * in the roster was, at first 0; both lists have one order.
 */
const struct snapshot_process *tracked_process(const struct tracked *tracked,
					       const struct snapshot *snapshot, size_t *hint);

struct book_list {
	uint32_t refs; /* atomic */
	size_t count;
	struct tracked *list[]; /* in order of pid, then of inode */
};

struct book_list *book_list_ref(struct book_list *book_list);
struct book_list *book_list_unref(struct book_list *book_list);
