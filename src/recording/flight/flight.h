/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording of the last minutes that is thrown away, unless something happens: then the last
 * minute of a book becomes a file, which is an ordinary recording. Whoever finds the books adds
 * them, calls flight_round() when it is due, and says when something has happened.
 *
 * Books of many users are hostile to each other: each user has a recorder of its own, with its share
 * of our time and of the memory. Who is too fast for its share has gaps, and keyframes in between.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/quota.h"
#include "recording/format/layout.h"

struct flight;
struct namer;
struct scan_book;

/* Of what is kept, a file gets so much. */
#define FLIGHT_WINDOW_NS (60 * NS_PER_S)

struct flight_options {
	uint64_t time_ns;  /* how long it is kept */
	uint64_t size_max; /* of what is kept; and of the books that are recorded all the time */
	uint32_t percent;  /* of one processor, for all users together; 0 = no limit */
};

struct flight_counts {
	uint64_t events;  /* that were read */
	uint64_t missed;  /* that were in gaps */
	uint64_t dropped; /* intervals that went before their time */
	uint64_t size;
	uint64_t rounds;
	uint32_t users, books;
	uint32_t late; /* users who had a gap within the last ten seconds */
	uint64_t
		left_out; /* books, since the start, that were not recorded all the time: too large, too many */
};

int flight_new(struct flight **ret_flight, const struct flight_options *options);
struct flight *flight_free(struct flight *flight);

/*
 * A book of user @number; the caller keeps it until it is removed. 0 also if there is no room for it: then
 * its file will have what its rings still know. -ENOMEM.
 */
int flight_add(struct flight *flight, uint32_t number, struct scan_book *book);

/* Forgets a book and all that is kept of it. */
void flight_remove(struct flight *flight, struct scan_book *scan);

struct flight_file {
	const char *reason;          /* for the file: a word without quotes */
	const struct ending *ending; /* NULL = its owner lives */
	struct namer *namer;         /* NULL = no names */
	uint64_t size_max;           /* 0 = no limit */
	uint64_t since_ns;           /* CLOCK_REALTIME: from when on; 0 = of the last minute */
};

/*
 * The owner has ended: what is left of its book is read, and what a file needs of it is copied, so that its
 * memory can be freed: from now on @scan is only its name. What is kept stays until it is removed, or
 * until there is no room for it. False: nothing is kept.
 */
bool flight_end(struct flight *flight, struct scan_book *scan, const struct flight_file *file);
bool flight_keeps(const struct flight *flight, const struct scan_book *scan);

/*
 * Reads what is due at @now_ns, CLOCK_MONOTONIC. Return: when the next round is due; CLOCK_NEVER if
 * there are no books.
 */
uint64_t flight_round(struct flight *flight, uint64_t now_ns);

/*
 * Writes the last minute of a book into an empty file, up to this moment. 0; -EFBIG if it is more
 * than there may be, and -ENOSPC ...: then the file has the oldest part; or another negative errno.
 */
int flight_write(struct flight *flight, struct scan_book *scan, int fd,
		 const struct flight_file *file);

/*
 * A file of several books, one after the other, so that rounds can be made in between. Nobody's share
 * of our time is charged: whoever wants it limits how often. Each book is in it up to the moment at
 * which it is added; @ended: NULL = its owner lives. Results as for flight_write(); after a failure it
 * still has to be ended.
 */
struct flight_writing;

int flight_file_begin(struct flight *flight, int fd, const struct flight_file *file,
		      struct flight_writing **ret_writing);
int flight_file_add(struct flight_writing *writing, struct scan_book *scan,
		    const struct ending *ending);
int flight_file_end(struct flight_writing *writing); /* frees it */

void flight_counts(const struct flight *flight, struct flight_counts *ret_counts);
