/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the retention; private to them. */

#include "recording/flight/retention.h"

struct retention_chunk {
	struct retention_chunk *next;
	uint64_t order; /* in which it was added */
	uint64_t cost;
	struct recording_entry entry;
	uint8_t contents[];
};

_Static_assert(RETENTION_CHUNK_COST >= sizeof(struct retention_chunk) + 64,
	       "what malloc() needs is part of it");

struct retention_stream {
	uint32_t device;
	struct retention_chunk *first, *last;
	struct retention_chunk *second; /* the second keyframe; NULL = there is only one */
	uint64_t cost;
};

struct retention_book {
	uint32_t number;
	struct retention_stream bytes;
	struct retention_stream *streams;
	size_t count, capacity;
};

struct retention_user {
	uint32_t number;
	struct retention_book *books;
	size_t count, capacity;
	uint64_t cost; /* not in a struct quota: users are listed here with their books */
};

struct retention {
	struct retention_limits limits;
	struct retention_user *users;
	size_t count, capacity;
	uint64_t cost, order, dropped;
};

/* NULL = there is none. @user may be NULL. */
struct retention_user *retention_user(const struct retention *retention, uint32_t number);
struct retention_book *retention_book(const struct retention_user *user, uint32_t number);
