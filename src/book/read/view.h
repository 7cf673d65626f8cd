/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of one shard at one moment: every live record and all counters, exact as of event
 * `number`. For a dead owner it is the last state; for a living one the state at some moment during
 * the call, obtained by copying while it writes and replaying its log over the copy.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/reader.h"

struct idle_counters;

/* What is known about the owner. */
enum view_owner {
	VIEW_LIVING = 0,
	VIEW_DEAD = 1,
};

/* A part of the record table; records beyond count are dead. */
struct view_segment {
	struct book_record *records;
	uint32_t count;
	uint32_t capacity;
};

struct view {
	uint32_t device;
	bool rows_exact; /* false: a living owner was too fast; only the counters are exact */
	bool adds_up;    /* the live records sum to the counters */
	uint64_t number;
	uint64_t inexact; /* BOOK_INEXACT_... as the owner marked it */
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
	struct book_warm warm[BOOK_TYPES]; /* all 0 in books of version 1 */

	uint64_t live;          /* records that are alive and valid */
	uint64_t bad_rows;      /* records that claim to be alive but are invalid */
	uint32_t retries;       /* times the log had wrapped over events that were needed */
	uint32_t segment_count; /* of the whole table, whichever part was read */
	uint32_t first, end;    /* segments that were read; the others are empty here */
	struct view_segment segments[BOOK_SEGMENTS_MAX];
};

#define VIEW_NULL     \
	(struct view) \
	{             \
		0     \
	}

/*
 * Reads shard @device. 0 or a negative errno: -EBADMSG for a shard that contradicts itself, -EAGAIN
 * if not even the counters of a living owner could be read. A view can be reused for any number of
 * reads; its memory is kept.
 */
int view_read(struct view *view, struct reader *reader, uint32_t device, enum view_owner owner);

/* Counters only: cheap, and exact as well. No records. */
int view_read_totals(struct view *view, struct reader *reader, uint32_t device,
		     enum view_owner owner);

/* The same for a living owner, given @known from the previous call, which is brought up to date. */
int view_read_totals_since(struct view *view, struct reader *reader, uint32_t device,
			   struct idle_counters *known);

/*
 * All counters, but only @count segments of records from segment @first on, for tables that are too
 * large to read at once. Each part is exact as of its own moment; whether all records add up cannot
 * be determined from a part.
 */
int view_read_part(struct view *view, struct reader *reader, uint32_t device, enum view_owner owner,
		   uint32_t first, uint32_t count);

void view_deinit(struct view *view);

/* Whether a record that was read is a valid live buffer. */
static inline bool view_is_live(const struct book_record *record)
{
	return (record->meta & BOOK_META_LIVE) != 0;
}

/* Iterates over live records: for (view_first(&it); view_next(view, &it);) use it.record */
struct view_iterator {
	uint32_t segment;
	uint32_t index;
	const struct book_record *record;
};

/* The slot of the last record found. */
static inline uint32_t view_slot(const struct view_iterator *it)
{
	return it->segment * BOOK_SEGMENT_SLOTS + it->index - 1;
}

static inline bool view_next(const struct view *view, struct view_iterator *it)
{
	for (; it->segment < view->segment_count; it->segment++, it->index = 0) {
		const struct view_segment *segment = &view->segments[it->segment];

		while (it->index < segment->count) {
			it->record = &segment->records[it->index++];
			if (view_is_live(it->record))
				return true;
		}
	}
	return false;
}
