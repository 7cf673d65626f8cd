/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file from what is kept. For each book, a second recorder, which begins just now, gives it what is
 * not kept: the book and its bytes as they are now, names, the end of the owner, and devices of which
 * nothing is kept, as far as their rings go back. Of a process that has ended, this was written then.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "recording/flight/flight-private.h"
#include "recording/write/chunk-writer.h"
#include "recording/write/recorder.h"

#define FLIGHT_DEVICES_MAX BOOK_DEVICES

/* What is there now takes at most so many files of memory: of most of it, nothing is needed. */
#define FLIGHT_NOW_SHARE 4u

struct flight_writing {
	struct flight *flight;
	struct flight_file file;
	struct chunk_writer *writer;
	uint32_t books;
	uint64_t events, missed;
	uint32_t gaps;
	int cut; /* -EFBIG: of a book there was more than there may be */

	/* Of the book that is being added: */
	struct recording_entry first; /* the oldest that is kept */
	bool has_first;
	uint8_t kept[FLIGHT_DEVICES_MAX / 8]; /* bits: devices of which something is kept */
};

static void flight_recorder_cleanup(struct recorder **recorder)
{
	recorder_free(*recorder);
}

int flight_write_now(struct scan_book *book, const struct flight_file *file,
		     const struct ending *ending, struct chunk_pipe *pipe)
{
	CLEANUP(flight_recorder_cleanup) struct recorder *recorder = NULL;
	const struct recorder_options options = {.size_max = FLIGHT_NOW_SHARE * file->size_max};
	int r = chunk_pipe_init(pipe);

	if (r == 0)
		r = recorder_new(&recorder, pipe->fd, &options);
	if (r == 0)
		r = recorder_add(recorder, book, false);
	if (r == 0 && ending)
		r = recorder_end_book(recorder, book, ending, file->namer);
	if (r == 0)
		r = recorder_finish(recorder, file->reason, file->namer);
	return r;
}

static void flight_count(struct flight_writing *writing, const struct recording_entry *entry)
{
	if (entry->kind == RECORDING_EVENTS)
		writing->events += entry->count;
	if (entry->kind != RECORDING_GAP)
		return;
	writing->missed += entry->last - entry->first + 1;
	writing->gaps++;
}

static int flight_see_kept(void *context, const struct recording_entry *entry, const void *contents)
{
	struct flight_writing *writing = context;

	(void)contents;
	if (!writing->has_first)
		writing->first = *entry;
	writing->has_first = true;
	if (entry->device < FLIGHT_DEVICES_MAX)
		writing->kept[entry->device / 8] |= (uint8_t)(1u << entry->device % 8);
	return 0;
}

static int flight_copy_kept(void *context, const struct recording_entry *entry,
			    const void *contents)
{
	struct flight_writing *writing = context;
	struct recording_entry copy = *entry;

	copy.book = writing->books;
	flight_count(writing, &copy);
	return chunk_writer_copy(writing->writer, &copy, contents);
}

/* Which chunks of the second recorder are wanted: before, after and instead of those that are kept. */
enum flight_part {
	FLIGHT_BEFORE,
	FLIGHT_INSTEAD,
	FLIGHT_AFTER,
};

static bool flight_is_wanted(const struct flight_writing *writing,
			     const struct recording_entry *entry, enum flight_part part)
{
	switch (entry->kind) {
	case RECORDING_HEAD:
		return part == FLIGHT_BEFORE && writing->books == 0;
	case RECORDING_BOOK:
	case RECORDING_BYTES:
		return part == FLIGHT_BEFORE;
	case RECORDING_NAMES:
	case RECORDING_ENDED:
		return part == FLIGHT_AFTER;
	case RECORDING_EVENTS:
	case RECORDING_KEYFRAME:
	case RECORDING_GAP:
	case RECORDING_SITES:
		return part == FLIGHT_INSTEAD && entry->device < FLIGHT_DEVICES_MAX &&
		       !(writing->kept[entry->device / 8] >> entry->device % 8 & 1);
	default:
		return false;
	}
}

static int flight_copy_now(struct flight_writing *writing, struct chunk_pipe *pipe,
			   enum flight_part part)
{
	struct recording_entry entry;
	int r;

	chunk_pipe_rewind(pipe);
	while ((r = chunk_pipe_next(pipe, &entry)) > 0) {
		if (!flight_is_wanted(writing, &entry, part))
			continue;
		/* The file begins when what is kept begins. */
		if (entry.kind == RECORDING_HEAD && writing->has_first) {
			entry.stamp_first = entry.stamp_last = entry.stamp_now =
				writing->first.stamp_now;
			entry.monotonic_now = writing->first.monotonic_now;
			entry.realtime_now = writing->first.realtime_now;
		}
		if (entry.book != RECORDING_NONE)
			entry.book = writing->books;
		flight_count(writing, &entry);
		r = chunk_writer_copy(writing->writer, &entry, pipe->contents);
		if (r < 0)
			return r;
	}
	return r;
}

static int flight_put_end(struct flight_writing *writing)
{
	const struct recording_entry entry = {
		.kind = RECORDING_END,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
		.monotonic_now = clock_ns(CLOCK_MONOTONIC),
		.realtime_now = clock_ns(CLOCK_REALTIME),
	};
	char json[256];

	(void)snprintf(json, sizeof(json),
		       "{\"reason\":\"%.64s\",\"end_ns\":%" PRIu64 ",\"books\":%" PRIu32
		       ",\"events\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"gaps\":%" PRIu32
		       ",\"unreadable\":0}",
		       writing->file.reason, entry.realtime_now, writing->books, writing->events,
		       writing->missed, writing->gaps);
	return chunk_writer_end(writing->writer, &entry, json);
}

/* @user NULL: nothing is kept of it. */
static int flight_compose(struct flight_writing *writing, const struct flight_user *user,
			  const struct flight_book *book, struct chunk_pipe *now)
{
	const struct retention *retention = writing->flight->retention;
	uint64_t since = writing->file.since_ns;
	int r = -ENOENT;

	if (user && book->number != RECORDING_NONE)
		r = retention_walk(retention, user->number, book->number, since, flight_see_kept,
				   writing);
	if (r == 0 || r == -ENOENT)
		r = flight_copy_now(writing, now, FLIGHT_BEFORE);
	if (r == 0 && user && writing->has_first)
		r = retention_walk(retention, user->number, book->number, since, flight_copy_kept,
				   writing);
	if (r == 0)
		r = flight_copy_now(writing, now, FLIGHT_INSTEAD);
	return r < 0 ? r : flight_copy_now(writing, now, FLIGHT_AFTER);
}

int flight_file_begin(struct flight *flight, int fd, const struct flight_file *file,
		      struct flight_writing **ret_writing)
{
	uint64_t realtime = clock_ns(CLOCK_REALTIME);
	struct flight_writing *writing = calloc(1, sizeof(*writing));
	int r;

	if (!writing)
		return -ENOMEM;
	writing->flight = flight;
	writing->file = *file;
	if (!file->since_ns && realtime > FLIGHT_WINDOW_NS)
		writing->file.since_ns = realtime - FLIGHT_WINDOW_NS;
	r = chunk_writer_new(&writing->writer, fd, file->size_max);
	if (r < 0) {
		free(writing);
		return r;
	}
	*ret_writing = writing;
	return 0;
}

int flight_file_add(struct flight_writing *writing, struct scan_book *scan,
		    const struct ending *ending)
{
	CLEANUP(chunk_pipe_deinit) struct chunk_pipe now = CHUNK_PIPE_NULL;
	struct flight *flight = writing->flight;
	struct flight_book *book = NULL;
	struct flight_user *user = flight_find(flight, scan, &book);
	bool is_past = user && book->has_ended;
	int r = 0;

	if (is_past && book->number == RECORDING_NONE)
		return -ENOENT;
	if (user)
		flight_flush(flight, user, book);
	if (!is_past)
		r = flight_write_now(scan, &writing->file, ending, &now);
	if (r == -EFBIG) {
		writing->cut = r;
		r = 0;
	}
	writing->has_first = false;
	memset(writing->kept, 0, sizeof(writing->kept));
	if (r == 0)
		r = flight_compose(writing, user, book, is_past ? &book->past : &now);
	if (is_past)
		chunk_pipe_rest(&book->past);
	writing->books++;
	return r;
}

int flight_file_end(struct flight_writing *writing)
{
	int r = flight_put_end(writing);

	if (r == 0)
		r = writing->cut;
	chunk_writer_free(writing->writer);
	free(writing);
	return r;
}

int flight_write(struct flight *flight, struct scan_book *scan, int fd,
		 const struct flight_file *file)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct flight_writing *writing;
	struct flight_book *book;
	struct flight_user *user;
	int r = flight_file_begin(flight, fd, file, &writing), ended;

	if (r < 0)
		return r;
	r = flight_file_add(writing, scan, file->ending);
	ended = flight_file_end(writing);
	/* Files cost their user's share of our time, as rounds do. */
	user = flight_find(flight, scan, &book);
	if (user)
		user->debt_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return r < 0 ? r : ended;
}
