/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records books into a file, from outside: by reading them often enough. Whoever finds the books
 * adds them, calls recorder_round() again and again, and says which owners have ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ending.h"
#include "recording/format/layout.h"

struct namer;
struct recorder;
struct scan_book;

struct recorder_options {
	const char *const *argv; /* of the command that is recorded, ends with NULL; NULL = none */
	uint64_t size_max;       /* of the file; 0 = no limit */
	uint64_t round_ns; /* a round ends with the book that takes longer; 0 = with the last */
};

struct recorder_sums {
	uint64_t events;  /* in the file */
	uint64_t missed;  /* in gaps */
	uint64_t waiting; /* published, but not read in the last round */
	uint64_t bytes;   /* of the file */
	uint32_t gaps;
	uint32_t books;
	uint32_t
		unreadable; /* devices whose books contradict themselves: not recorded any further */
};

/* @fd: an empty file; stays the caller's. 0 or a negative errno. */
int recorder_new(struct recorder **ret_recorder, int fd, const struct recorder_options *options);
struct recorder *recorder_free(struct recorder *recorder);

/*
 * A book that is there from now on; the caller keeps it until it has ended or all is over. @is_new: it was
 * made after the recording began, so what its rings have lost already is missing; of an older book it was
 * before the recording.
 */
int recorder_add(struct recorder *recorder, struct scan_book *book, bool is_new);

/*
 * Reads what is new. @ret_wait_ms: how long to wait until the next round. 0, or why nothing more
 * can be written: -ENOSPC, -EFBIG (the limit), -ENOMEM ...
 */
int recorder_round(struct recorder *recorder, unsigned int *ret_wait_ms);

/* Reads what is new of a book, and writes everything of it that was read. As recorder_round(). */
int recorder_flush(struct recorder *recorder, struct scan_book *book);

/* The owner has ended, or has no more to do with its book: what is left of it is read. */
int recorder_end_book(struct recorder *recorder, struct scan_book *book,
		      const struct ending *ending, struct namer *namer);

/*
 * Ends the recording: everything that was read is written, then names from @namer (NULL = none) and the
 * end with @reason. 0 or a negative errno; after a failure of another call, that one again.
 */
int recorder_finish(struct recorder *recorder, const char *reason, struct namer *namer);

/* Forgets a book: nothing more of it is read. */
void recorder_drop_book(struct recorder *recorder, const struct scan_book *book);

/* Memory that a book takes here: what lives, and call sites. */
uint64_t recorder_book_size(const struct recorder *recorder, const struct scan_book *book);

const struct recorder_sums *recorder_sums(struct recorder *recorder);
