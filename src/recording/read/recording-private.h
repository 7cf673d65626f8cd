/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files that read a recording share; private to them. */

#include "model/timebase.h"
#include "recording/read/chunk-file.h"
#include "recording/read/recording.h"

/* The events, keyframes, gaps and sites of one device of one book. */
struct recording_stream {
	uint32_t book, device;
	const uint32_t *chunks; /* numbers of entries, in the order of the file */
	size_t count;
};

struct recording_known {
	struct recording_owner owner;
	struct timebase timebase;
	struct timebase_now moment; /* the last one of the book */
	const uint32_t *chunks;     /* its bytes and names */
	size_t count;
	size_t first_stream, stream_count;
};

struct recording_namer;

struct recording {
	struct chunk_file file;
	struct recording_facts facts;
	char *path, *command, *host;

	struct recording_known *books; /* facts.books of them */
	struct recording_stream *streams;
	size_t stream_count;
	uint32_t *order; /* of entries; the arrays of books and streams are parts of it */

	/* What restored books may take: a small file from anybody must not fill the machine's memory. */
	uint64_t room;
	struct chunk_bytes contents; /* of the chunk that was read last */
	struct recording_namer *namer;
};

static inline const struct recording_entry *recording_entry(const struct recording *recording,
							    uint32_t number)
{
	return &recording->file.entries[number];
}

static inline const struct recording_entry *
stream_entry(const struct recording *recording, const struct recording_stream *stream, size_t at)
{
	return recording_entry(recording, stream->chunks[at]);
}

/* Reads into recording->contents. */
static inline int recording_read(struct recording *recording, const struct recording_entry *entry)
{
	return chunk_file_read(&recording->file, entry, &recording->contents);
}

/* The stamp of the last moment that is not after a time; 0 = before the book, UINT64_MAX = all. */
uint64_t recording_stamp(const struct recording_known *book, uint64_t time_ns);

/* NULL: the recording has nothing of that device. */
const struct recording_stream *recording_find_stream(const struct recording *recording, size_t book,
						     uint32_t device);

bool recording_wants(const struct recording *recording, const struct recording_filter *filter,
		     const struct recording_stream *stream);

/*
 * Whether a chunk of a stream says something of bytes in use that those before it do not: events and
 * gaps do, and a keyframe at the beginning. @ret_time_ns: from when on.
 */
bool recording_tells(const struct recording *recording, const struct recording_stream *stream,
		     size_t at, uint64_t *ret_time_ns);

/* In which of @count steps of a span a time is; the first or the last one if it is in none. */
size_t recording_step(const struct recording_span *span, size_t count, uint64_t time_ns);

/* The sum of the types that the filter accepts. */
uint64_t recording_sum(const struct recording_filter *filter, const uint64_t bytes[BOOK_TYPES]);

/* Cuts a moment's time to one of the recording. */
void recording_moment_at(const struct recording *recording, uint64_t time_ns,
			 struct recording_moment *ret_moment);

void recording_namer_free(struct recording_namer *namer);
