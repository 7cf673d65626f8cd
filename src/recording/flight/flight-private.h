/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the flight recorder; private to them. */

#include "recording/flight/chunk-pipe.h"
#include "recording/flight/flight.h"
#include "recording/flight/retention.h"

struct recorder;

struct flight_book {
	struct scan_book *book; /* the caller's; of one that has ended only its address is used */
	uint32_t number;        /* in the recorder; RECORDING_NONE = it is not recorded */
	uint64_t size;          /* that it takes in memory */
	bool has_ended;         /* its owner: nothing more is read, because it is in @past */
	struct chunk_pipe past; /* the book as it was at its end, with names */
};

struct flight_user {
	uint32_t number;
	struct recorder *recorder; /* NULL = it has failed, until @due */
	struct chunk_pipe pipe;
	struct flight_book *books;
	size_t count, capacity;
	uint64_t size; /* of all books that are recorded */

	/* CLOCK_MONOTONIC */
	uint64_t due;
	uint64_t paid_ns; /* when the debt was last reduced */
	uint64_t missed_ns, active_ns;
	uint64_t wait_ns;
	uint64_t debt_ns; /* of our time */
	uint64_t retry_ns;
	uint64_t missed, events;
};

struct flight {
	struct flight_options options;
	struct retention *retention;
	struct flight_user *users;
	size_t count, capacity;
	uint64_t events, missed; /* of users who are gone */
	uint64_t weighed_ns;
	uint64_t rounds;
	uint64_t left_out;
};

/* The book as it is now, in a new pipe: what a file has besides what is kept. */
int flight_write_now(struct scan_book *book, const struct flight_file *file,
		     const struct ending *ending, struct chunk_pipe *pipe);

/* Reads what is new of a book, so that what is kept is as of now. */
void flight_flush(struct flight *flight, struct flight_user *user, struct flight_book *book);

struct flight_user *flight_find(const struct flight *flight, const struct scan_book *book,
				struct flight_book **ret_book);
