/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the time stamps of a book to the time of day. A book has its clock and CLOCK_MONOTONIC as of
 * its creation; the reader has both as of now; in between the clock runs evenly. Times from a
 * hostile or broken book are limited to [start of the book, now]. Times are for display: order
 * comes from event numbers.
 */

#include <stdint.h>

struct book_header;

/* One moment on three clocks, passed in by the caller. */
struct timebase_now {
	uint64_t stamp; /* the book's own clock, see book_clock_read() */
	uint64_t monotonic;
	uint64_t realtime;
};

struct timebase {
	uint64_t stamp_start, stamp_now;
	uint64_t start, now; /* CLOCK_REALTIME, ns; start <= now */
};

void timebase_init(struct timebase *timebase, const struct book_header *header,
		   const struct timebase_now *now);

/* CLOCK_REALTIME in ns; 0 for the stamp 0, which means "never". */
uint64_t timebase_ns(const struct timebase *timebase, uint64_t stamp);
