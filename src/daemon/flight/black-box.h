/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The flight recorder of the daemon: its thread, its view of the tracked books, and what makes it
 * keep a file: an allocation that fails, a process that ends and leaves something. A process that
 * fails all the time has one file, which is not made anew all the time, and a user has so many in a
 * minute.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/book-id.h"
#include "base/quota.h"
#include "daemon/flight/flight-files.h"
#include "daemon/registry/tracked.h"
#include "recording/flight/flight.h"

struct black_box;
struct loop;
struct symbols;

#define BLACK_BOX_AGAIN_NS (30 * NS_PER_S) /* between two files of one process's failures */
#define BLACK_BOX_FILE_SHARE 8u            /* a file is at most this part of all files */

/*
 * Processes that have ended of which there is a copy as long as there are their events: so many, on so small
 * a part of our descriptors. The oldest of the user who has most goes.
 */
#define BLACK_BOX_ENDED_MAX 256u
#define BLACK_BOX_ENDED_SHARE 16u

/* One processor's time for it. */
#define BLACK_BOX_PERCENT 5u

struct black_box_config {
	const char *state;       /* folder; outlives the box */
	uint64_t keep_s;         /* how long files are kept */
	uint64_t time_ns;        /* how long events are kept */
	uint64_t size_max;       /* of what is kept in memory; and of all files */
	struct symbols *symbols; /* NULL: native frames stay addresses */
	struct loop *loop;
	void *context;
	/* In the loop's thread: nothing of the book is needed here any more, as black_box_end() says. */
	void (*copied)(void *context, struct tracked *tracked, bool is_kept);
};

struct black_box_counts {
	struct flight_counts flight;
	uint64_t files;   /* that were written */
	uint64_t refused; /* that were not: too many, or too soon */
	uint64_t failed;  /* that could not be */
};

/* Whose a book of a file is. */
struct black_box_owner {
	uint32_t maker;
	struct book_id book;
	char namespaces[NAMESPACES_SIZE];
};

/* A recording in memory, of all books that are kept. */
struct black_box_file {
	int fd;                         /* the caller's; -1 = there are no books */
	uint64_t from_ns, until_ns;     /* CLOCK_REALTIME: for all moments between them */
	struct black_box_owner *owners; /* by the books' numbers; the caller frees them */
	size_t count;
	uint64_t cost_ns; /* of a processor's time */
};

/* 0 or a negative errno: without a folder for its files there is none. */
int black_box_new(struct black_box **ret_box, const struct black_box_config *config);
struct black_box *black_box_free(struct black_box *box);

/* Ends what was begun: ended books are copied. Nothing is recorded any more. From the loop's thread. */
void black_box_stop(struct black_box *box);

/*
 * A book that is tracked from now on, and one whose process has ended: what it did is copied, or (not
 * @is_kept) forgotten. From the loop's thread.
 */
void black_box_add(struct black_box *box, struct tracked *tracked);
void black_box_end(struct black_box *box, struct tracked *tracked, bool is_kept);

/* Something has happened. From any thread; the file is there a little later. */
void black_box_keep(struct black_box *box, struct tracked *tracked, enum flight_files_why why);

/*
 * Everything that is kept, written between rounds: so it may take a while. From any thread but the
 * loop's. 0, -ETIME if it takes longer than @timeout_ns, or another negative errno.
 */
int black_box_take(struct black_box *box, uint64_t timeout_ns, struct black_box_file *ret_file);

/* CLOCK_REALTIME: since when moments are kept. From any thread. */
uint64_t black_box_from(const struct black_box *box);

/* From any thread. */
void black_box_counts(struct black_box *box, struct black_box_counts *ret_counts);
