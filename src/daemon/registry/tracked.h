/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A book that the daemon knows, and the list of all of them.
 *
 * The loop owns the list; other threads read books too, and must not make the loop wait. So a
 * tracked book is reference-counted, what identifies it never changes, and its reader is used under
 * its own lock. A book_list is immutable: a thread that reads all books takes a reference to the
 * current one and drops it afterwards.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"
#include "base/ending.h"
#include "base/process-id.h"
#include "source/books/scan.h"
#include "source/proc/namespaces.h"

struct snapshot;
struct snapshot_process;
struct snapshot_request;
struct tracked_before;
struct view;

#define TRACKED_COMM_SIZE sizeof(((struct proc_facts *)NULL)->comm)

struct tracked {
	/* Immutable: any thread may read it. */
	struct book_id id;
	struct process_id process;
	uint32_t maker;    /* user who created the book and may see its details */
	uint32_t user;     /* real user of the process when it was first seen */
	uint32_t source;   /* enum book_source */
	bool is_older;     /* than the daemon: earlier counts are not new */
	bool memory_is_v1; /* see memory_path */
	uint64_t since_ns; /* CLOCK_REALTIME when the daemon learnt of it */
	char comm[TRACKED_COMM_SIZE];
	char namespaces[NAMESPACES_SIZE]; /* where the process was when it was first seen */
	char *memory_path;                /* of its memory cgroup then; NULL = not known */

	uint32_t refs;        /* atomic */
	bool has_ended;       /* its owner; atomic, see tracked_has_ended() */
	struct ending ending; /* valid then */

	/*
	 * Protects the book. It may be held for as long as a reading takes, so the loop never waits
	 * for it. What the book says of its owner and container is immutable and needs no lock.
	 */
	pthread_mutex_t book_lock;
	struct scan_book *book;
	bool was_slow;       /* by wall time, or by CPU time if it was slow before */
	bool has_before;     /* the first reading of an older book was made: see `before` */
	uint64_t rest_ns;    /* how long it was skipped the last time */
	uint64_t rest_until; /* CLOCK_MONOTONIC: its totals are not read before then */
	struct tracked_before *before; /* what it had counted by the first reading, by device */
	size_t before_count;

	/* Of its peaks, when they were last looked at; used only by the recorder's sampling. */
	uint64_t peaks_signature;

	/* The link of the program that keeps it, NULL = none; used only by the loop's thread. */
	const void *link;

	/* Its events are or were printed as the old server's lines; used only by who prints them. */
	bool is_printed;

	/* Stacks before this index have been requested; used only by the learner. */
	uint32_t stacks_seen;

	/* For the recorder: the incidents that it has reported. Lock order: before book_lock. */
	pthread_mutex_t incident_lock;
	struct tracked_told {
		uint64_t key;
		uint64_t count; /* recorded in the store */
		uint64_t told;  /* reported to users */
	} * told;
	size_t told_count, told_capacity;
	uint64_t signature; /* of the counters that change with every incident */
	bool is_hurried;    /* atomic: a check is already scheduled */
};

/*
 * Takes the book in any case. NULL: no memory. @since: proc_monotonic_ns(); books created before it
 * are older. @namespaces: as in source/proc/namespaces.h.
 */
struct tracked *tracked_new_consume(struct scan_book *book, uint64_t since, const char *namespaces);
struct tracked *tracked_ref(struct tracked *tracked);
struct tracked *tracked_unref(struct tracked *tracked);

static inline bool tracked_has_ended(const struct tracked *tracked)
{
	return __atomic_load_n(&tracked->has_ended, __ATOMIC_ACQUIRE); /* with registry_end() */
}

/*
 * book_collect() under the lock. @view is borrowed. A living process whose totals take far longer
 * than any well-behaved one's is skipped for longer and longer, so that it does not slow the others
 * down: it is then in the snapshot, but inexact and without totals.
 */
int tracked_collect(struct tracked *tracked, const struct snapshot_request *request,
		    struct view *view, struct snapshot *snapshot);

/* Keeps what is live at new peaks of a living process, see book-kept.h; and adds what was kept. */
int tracked_keep_peaks(struct tracked *tracked, struct view *view);
int tracked_collect_kept(struct tracked *tracked, const struct snapshot_request *request,
			 struct snapshot *snapshot);

/*
 * The row of its owner in a snapshot of all processes, or NULL. @hint: the row of the previous book
 * in the list, 0 at first; both lists have the same order.
 */
const struct snapshot_process *tracked_process(const struct tracked *tracked,
					       const struct snapshot *snapshot, size_t *hint);

struct book_list {
	uint32_t refs; /* atomic */
	size_t count;
	struct tracked *list[]; /* sorted by pid, then by inode */
};

struct book_list *book_list_ref(struct book_list *book_list);
struct book_list *book_list_unref(struct book_list *book_list);
