/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files that restore a book share; private to them. */

#include "recording/read/recording-private.h"
#include "recording/read/replay.h"

struct reader;

/* How often an incident had happened, and when for the last time. */
struct restore_repeats {
	uint64_t count;
	uint64_t last_time;
};

struct restore {
	struct recording *recording;
	const struct recording_known *book;
	const struct recording_moment *moment;
	uint64_t stamp; /* the moment by the book's clock */
	int fd;         /* the book that is being made; owned by it once it is one */
	uint64_t size;
	uint64_t written;
	struct reader *reader; /* of it */
	/* Of all incidents, from the last bytes before the moment; NULL = there are no later ones. */
	struct restore_repeats *repeats;
};

/* -EBADMSG beyond the end; -EFBIG beyond the recording's room; or another negative errno. */
int restore_write(struct restore *restore, uint64_t offset, const void *bytes, size_t length);
int restore_read(const struct restore *restore, uint64_t offset, void *ret_bytes, size_t length);

struct replay_cut restore_cut(const struct restore *restore, const struct recording_stream *stream);

struct scan_book;

/* As recording_restore(), but with only one of its devices. */
int restore_one(struct recording *recording, const struct recording_stream *stream,
		const struct recording_moment *moment, struct scan_book **ret_book);

/* A device that cannot be restored becomes one that cannot be read; that is no failure. */
int restore_device(struct restore *restore, const struct recording_stream *stream);
