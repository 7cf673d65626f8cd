/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last minutes of recordings, in memory: chunks as a recorder wrote them, of a bounded size. What
 * is kept of a device always begins with a keyframe and has everything after it, so it can be
 * restored. What is too much is taken from the user who has most, an interval between two keyframes
 * at a time, the oldest first: whatever one user does, it takes nothing from users who have less.
 */

#include <stddef.h>
#include <stdint.h>

#include "recording/format/layout.h"

struct retention;

struct retention_limits {
	uint64_t size_max; /* of all chunks, with what it costs to keep them */
	uint64_t time_ns;  /* older intervals are dropped */
};

/* What a chunk costs beyond its bytes, at least. */
#define RETENTION_CHUNK_COST 512u

int retention_new(struct retention **ret_retention, const struct retention_limits *limits);
struct retention *retention_free(struct retention *retention);

/*
 * A chunk of a user's book. @entry: as the recorder wrote it, except for its offset; @contents: its
 * second frame, entry->length bytes, copied. Kinds that a file gets anew are passed over, and so are
 * events of a device without a keyframe. 0 or -ENOMEM; then, and if there is no room, the device is
 * forgotten up to its next keyframe.
 */
int retention_add(struct retention *retention, uint32_t user, const struct recording_entry *entry,
		  const void *contents);

/* Drops what is too old at @now_ns, CLOCK_REALTIME. */
void retention_expire(struct retention *retention, uint64_t now_ns);

/* All of a book, by the numbers of its user and its own; all of a user. */
void retention_drop_book(struct retention *retention, uint32_t number, uint32_t book_number);
void retention_drop_user(struct retention *retention, uint32_t number);

/* 0, or what ends the walk. */
typedef int retention_fn(void *context, const struct recording_entry *entry, const void *contents);

/*
 * The chunks of a book in the order in which they were added: of each device from its last keyframe
 * before @since_ns on (CLOCK_REALTIME), or from its first. 0, -ENOENT if there are none, -ENOMEM, or
 * what @fn returned.
 */
int retention_walk(const struct retention *retention, uint32_t user, uint32_t number,
		   uint64_t since_ns, retention_fn *fn, void *context);

/* What is kept, with its cost. */
uint64_t retention_size(const struct retention *retention);
uint64_t retention_user_size(const struct retention *retention, uint32_t number);

/* Intervals that were dropped for their size, before their time. */
uint64_t retention_dropped(const struct retention *retention);
