/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The highest moment of one type of memory in one book, and what was live then. Rows of a snapshot
 * that was asked for peaks (snapshot_request.at_peak) are those of the peaks, each peak's together
 * and in the order of the peaks. One row stands for all buffers of a call site with the same name and
 * phase; those without device memory are left out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

#define SNAPSHOT_PEAKS_MAX 65536u

/* The most that was live in each bank at one time; it need not have been when the most bytes were. */
struct snapshot_per_bank {
	bool is_known; /* of each buffer what it takes there, and all are of one allocator */
	bool is_all;   /* at any time; else as far back as is known: at least */
	uint64_t bytes;
};

struct snapshot_peak {
	uint32_t process; /* index */
	uint32_t device;  /* as the process numbers it */
	uint32_t type;
	uint32_t bound;   /* of the bytes: enum snapshot_bound */
	uint64_t bytes;   /* the most that it held at one time */
	uint64_t time_ns; /* when it first held that much */
	uint64_t
		moment_ns; /* the rows are of this moment: the same, or when it was reached again */
	uint64_t known;    /* bytes of the rows; never more than @bytes */
	bool exact;        /* the rows are all that was live then; else some of it */
	uint64_t buffers;  /* that the rows stand for */
	struct snapshot_per_bank per_bank;
	size_t first, count; /* rows of the snapshot's buffers, until those are sorted */
};

/* 0, -ENOMEM, or -ENOBUFS beyond the maximum (which also adds a note). */
int snapshot_add_peak(struct snapshot *snapshot, const struct snapshot_peak *peak);

/* The largest first; those of a mesh, which are alike, together. */
void snapshot_sort_peaks(struct snapshot *snapshot);

/* What was live then and is not known any more: it was freed too long ago. */
static inline uint64_t snapshot_peak_unknown(const struct snapshot_peak *peak)
{
	return peak->bytes > peak->known ? peak->bytes - peak->known : 0;
}
