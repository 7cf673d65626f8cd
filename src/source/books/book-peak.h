/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was live at the highest moment of each type of a shard. Nothing is recorded for it: an event
 * carries the whole record, so the log can be run backwards from the present, to any state that it
 * reaches. Events are ordered by their numbers; a state after which as many bytes were live as at the
 * peak is a peak, whether it was the first of them or not.
 *
 * If the log does not reach back that far, the state before its oldest event is what is left to go by:
 * a buffer of it that was born before the peak was live then, and so was one in the graveyard that was
 * born before it and freed after it. That is a lower bound. There, only time stamps tell the order, and a
 * stamp is taken before the lock: so where more than one thread writes, what happened shortly before or
 * after the peak is left out.
 *
 * What a bank held at most is the same run of the log, with what each buffer takes in a bank. It may have been
 * at another moment, so only a log that reaches back to the first event, or to a reset, knows it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/read/log.h"
#include "book/read/view.h"
#include "model/snapshot-peak.h"
#include "source/books/book-private.h"

/* Of a type; times are stamps of the book. */
struct book_peak {
	uint64_t bytes;
	uint64_t time;   /* when it was first reached */
	uint64_t moment; /* the records are of this moment */
	uint64_t number; /* the last event before it; only if it is a state that was found */
	uint64_t known;  /* bytes of the records; never more than @bytes */
	bool is_found;   /* the records are a state of the shard, not a bound */
	bool exact;      /* the records are all that had bytes then */
	size_t first, count;
	struct snapshot_per_bank per_bank;
};

/* What each shape takes in a bank, by the last digits of its id; of one book. */
struct book_peak_shape {
	uint32_t id; /* 0 = none */
	bool is_known;
	uint64_t bytes;
};
#define BOOK_PEAK_SHAPES 256u

struct book_peaks {
	struct book_peak types[BOOK_TYPES];
	struct book_record *records; /* threads of those that have ended are 0 */
	size_t count, capacity;

	/* Private. */
	struct log log;
	struct book_graves graves;
	struct book_peak_shape shapes[BOOK_PEAK_SHAPES];
	uint64_t number; /* of the view */
	size_t events;   /* of the log that count: those before the view's moment */
};

struct book_peak_wish {
	uint32_t device;
	enum view_owner owner;
	uint32_t types;     /* a bit for each that is wanted */
	uint32_t slots_max; /* of a larger table no records are read; 0 = any */
	uint64_t doubt;     /* stamps of two threads may be out of order by so much */
};

/*
 * Reads a shard. @view is a view of it afterwards, but its records are those of an earlier moment.
 * Returns what view_read() does. Peaks can be reused, and keep their memory.
 */
int book_peaks_read(struct book_peaks *peaks, struct view *view, struct reader *reader,
		    const struct book_peak_wish *wish);
void book_peaks_deinit(struct book_peaks *peaks);

/*
 * Reads a shard and takes the view's records back to the newest allocation that failed there and that
 * @failed counts. -ENOENT: the log does not reach back to it, or the table is too large.
 */
int book_peaks_rewind_failed(struct book_peaks *peaks, struct view *view, struct reader *reader,
			     const struct book_peak_wish *wish, const struct book_incident *failed,
			     struct book_event *ret_event);

/* How far stamps of two threads may be out of order; of a clock that stands still no order is known. */
uint64_t book_peak_doubt(const struct timebase *timebase);

/* The rest is private to book-peak.c and book-peak-bound.c. */

/* By birth; a grave and a record with the same key and birth are the same buffer. */
int book_peak_compare(const void *left, const void *right);

/* Adds a record to the peak that is being filled. 0 or -ENOMEM. */
int book_peaks_keep(struct book_peaks *peaks, struct book_peak *peak,
		    const struct book_record *record);

/*
 * Adds the records of a peak up. More than the peak can only be if the book contradicts itself, or if its
 * stamps are out of order: then the youngest are left out.
 */
void book_peaks_add_up(struct book_peaks *peaks, struct book_peak *peak);

/* Fills in the peaks of @types that were not found; @view is in the oldest state in reach. 0 or a negative errno. */
int book_peaks_bound(struct book_peaks *peaks, const struct view *view, struct reader *reader,
		     const struct book_peak_wish *wish, uint32_t types);
