/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What goes into the history: the totals of every second, incidents as they appear in the books,
 * and what each process has left when it ended. Books are read in a worker's thread; what users
 * should learn is passed to the loop as notices.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "model/query.h"
#include "model/types.h"

struct collector;
struct last_hour_change;
struct leak_sites;
struct loop;
struct notice;
struct recorder;
struct registry;
struct snapshot;
struct store;
struct store_sees;
struct tally;
struct tracked;
struct worker;

struct recorder_config {
	struct loop *loop;
	struct worker *work;
	struct worker *totals; /* for what cannot wait: reads totals of books; NULL = @work */
	struct registry *registry;
	struct collector *collector; /* source of totals */
	struct store *store;         /* NULL: nothing is stored, but everything is reported */
	struct symbols *symbols;     /* NULL: native frames stay addresses */
	bool strict_close;           /* what was live when its device was closed is reported */
	void *context;
	/*
	 * Both in the loop's thread: each notice, and each book that was finally judged. @is_read: it was
	 * read, and is in the way of others until recorder_let_go(); else there was no room for it, and it
	 * has to be let go at once.
	 */
	void (*told)(void *context, const struct notice *notice);
	void (*judged)(void *context, struct tracked *tracked, bool is_read);
	/* In any thread: an allocation has failed; or it has ended and left something. NULL = nobody */
	void (*happened)(void *context, struct tracked *tracked, bool has_ended);
};

int recorder_new_past(struct recorder **ret_past, const struct recorder_config *config);

/* The worker must have been freed first. */
struct recorder *recorder_free_past(struct recorder *recorder);

/* A book was added; from the loop's thread. */
void recorder_add_book(struct recorder *recorder, const struct tracked *tracked);

/*
 * Judges a book whose owner has ended, when it is its user's turn; by its totals, at once, if too much waits
 * (exit-queue.h). From the loop's thread, like the next two.
 */
void recorder_judge(struct recorder *recorder, struct tracked *tracked);

/* Its report is on disk, and nobody holds the book any more. */
void recorder_let_go(struct recorder *recorder, const struct tracked *tracked);

struct recorder_exits {
	uint64_t books, bytes; /* that wait: to be read, or for their report to be on disk */
};

void recorder_exits(const struct recorder *recorder, struct recorder_exits *ret_exits);

/* Something in this book cannot wait for the next second: a failed allocation. */
void recorder_hurry(struct recorder *recorder, struct tracked *tracked);

/*
 * Searches all books for incidents at once. From any thread, before a query to the store. The loop
 * reports what is new a little later.
 */
void recorder_look(struct recorder *recorder);

/* Incidents of each kind since the start. From any thread. */
void recorder_incidents(struct recorder *recorder, uint64_t ret_counts[TYPES_INCIDENTS]);

/* What ended processes have left, by call site. From any thread. */
void recorder_leak_sites(struct recorder *recorder, struct leak_sites *ret_sites);

/* How much memory and how many incidents there are more than an hour ago. From any thread. */
void recorder_last_hour(struct recorder *recorder, struct last_hour_change *ret_change);

/* What ended processes did, so that counters never go down. From any thread. */
void recorder_tally(struct recorder *recorder, struct tally *ret_tally);

/*
 * Peaks of ended processes, the last one first, as far as they may be seen. The caller frees the snapshots
 * and the array. 0 or -ENOMEM. From any thread.
 */
int recorder_peaks_ended(struct recorder *recorder, const struct store_sees *sees,
			 struct snapshot ***ret_list, size_t *ret_count);

/* Processes that have ended and left buffers. From any thread. */
uint64_t recorder_leaked(struct recorder *recorder);
