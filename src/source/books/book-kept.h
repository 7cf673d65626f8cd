/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was live at the peaks of a book, as a reader that looks at it again and again has seen it. A book
 * forgets: what its log reached when the peak was new is gone later. So whoever looks soon after each new
 * peak, and keeps what was live by call site, knows it as long as the book is there. Sites are kept by
 * their ids in the book, which never change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot-peak.h"

struct book_record;
struct book_peak;
struct scan_book;
struct snapshot;
struct snapshot_request;
struct view;

#define BOOK_KEPT_PEAKS_MAX 256u /* devices and types of a book */
#define BOOK_KEPT_SITES_MAX \
	512u /* of a peak; of more, names and phases are left out, then the smallest */
#define BOOK_KEPT_SLOTS_MAX \
	(UINT32_C(1) << 18) /* records ever used of a device: else it takes too long */
#define BOOK_KEPT_BOOK_MAX (UINT64_C(256) << 10) /* bytes of the sites of a book; likewise */
#define BOOK_KEPT_BYTES_MAX (UINT64_C(16) << 20) /* of all books together; then no more is kept */

/* Buffers of a peak with the same stack, name and phase. */
struct book_site {
	uint32_t stack, name, phase;
	uint32_t buffers;
	uint64_t bytes;
	uint64_t birth; /* of the oldest */
};

struct book_kept_peak {
	uint32_t device;
	uint32_t type;
	uint64_t bytes, time, moment, known;
	bool exact;
	struct snapshot_per_bank per_bank;
	struct book_site *sites; /* largest first */
	size_t count;
};

struct book_kept {
	struct book_kept_peak *peaks;
	size_t count, capacity;
	size_t sites;  /* of all peaks */
	uint32_t next; /* the device with which the next look begins */
};

/* The sites of some records, largest first; the caller owns them. Sorts the records. 0 or -ENOMEM. */
int book_sites_new(struct book_record *records, size_t count, struct book_site **ret_sites,
		   size_t *ret_count);

/* What is kept of a peak; NULL unless it is the same and more is known of it than of @peak. */
const struct book_kept_peak *book_kept_find(const struct book_kept *kept, uint32_t device,
					    uint32_t type, const struct book_peak *peak);

/*
 * Looks at a living book and keeps what is new: cheap if there is no new peak. 0 or a negative errno;
 * -EAGAIN: it took too long, and the next look goes on from there. @view is borrowed.
 */
int book_kept_look(struct scan_book *book, struct view *view);

/* Adds the owner, and the peaks that are kept, to a snapshot; does not look at the book's records. */
int book_kept_collect(struct scan_book *book, const struct snapshot_request *request,
		      struct snapshot *snapshot);

struct book_kept *book_kept_free(struct book_kept *kept);
