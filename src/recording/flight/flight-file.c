/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file from what is kept. A second recorder, which begins just now, gives it what is not kept: the
 * book and its bytes as they are now, names, the end of the owner, and devices of which nothing is
 * kept, as far as their rings go back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "recording/flight/flight-private.h"
#include "recording/write/chunk-writer.h"
#include "recording/write/recorder.h"

#define FLIGHT_DEVICES_MAX BOOK_DEVICES

/* What is there now takes at most so many files of memory: of most of it, nothing is needed. */
#define FLIGHT_NOW_SHARE 4u

struct flight_writing {
	struct chunk_writer *writer;
	struct recording_entry first; /* the oldest that is kept */
	bool has_first;
	uint64_t events, missed;
	uint32_t gaps;
	uint8_t kept[FLIGHT_DEVICES_MAX / 8]; /* bits: devices of which something is kept */
};

static void flight_writer_cleanup(struct chunk_writer **writer)
{
	chunk_writer_free(*writer);
}

static void flight_recorder_cleanup(struct recorder **recorder)
{
	recorder_free(*recorder);
}

/* The book, as it is now, in a pipe. */
static int flight_write_now(struct scan_book *book, const struct flight_file *file,
			    struct chunk_pipe *pipe)
{
	CLEANUP(flight_recorder_cleanup) struct recorder *recorder = NULL;
	const struct recorder_options options = {.size_max = FLIGHT_NOW_SHARE * file->size_max};
	int r = chunk_pipe_init(pipe);

	if (r == 0)
		r = recorder_new(&recorder, pipe->fd, &options);
	if (r == 0)
		r = recorder_add(recorder, book, false);
	if (r == 0 && file->ended)
		r = recorder_end_book(recorder, book, file->ended, file->namer);
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

	copy.book = 0; /* the only one in the file */
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
		flight_count(writing, &entry);
		r = chunk_writer_copy(writing->writer, &entry, pipe->contents);
		if (r < 0)
			return r;
	}
	return r;
}

static int flight_end(struct flight_writing *writing, const char *reason)
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
		       "{\"reason\":\"%.64s\",\"end_ns\":%" PRIu64
		       ",\"books\":1,\"events\":%" PRIu64 ",\"missed\":%" PRIu64
		       ",\"gaps\":%" PRIu32 ",\"unreadable\":0}",
		       reason, entry.realtime_now, writing->events, writing->missed, writing->gaps);
	return chunk_writer_end(writing->writer, &entry, json);
}

/* @user NULL: nothing is kept of it. */
static int flight_compose(const struct flight *flight, const struct flight_user *user,
			  const struct flight_book *book, struct flight_writing *writing,
			  struct chunk_pipe *now)
{
	uint64_t realtime = clock_ns(CLOCK_REALTIME);
	uint64_t since = realtime > FLIGHT_WINDOW_NS ? realtime - FLIGHT_WINDOW_NS : 0;
	int r = -ENOENT;

	if (user && book->number != RECORDING_NONE)
		r = retention_walk(flight->retention, user->number, book->number, since,
				   flight_see_kept, writing);
	if (r == 0 || r == -ENOENT)
		r = flight_copy_now(writing, now, FLIGHT_BEFORE);
	if (r == 0 && user && writing->has_first)
		r = retention_walk(flight->retention, user->number, book->number, since,
				   flight_copy_kept, writing);
	if (r == 0)
		r = flight_copy_now(writing, now, FLIGHT_INSTEAD);
	return r < 0 ? r : flight_copy_now(writing, now, FLIGHT_AFTER);
}

int flight_write(struct flight *flight, struct scan_book *scan, int fd,
		 const struct flight_file *file)
{
	CLEANUP(chunk_pipe_deinit) struct chunk_pipe now = CHUNK_PIPE_NULL;
	CLEANUP(flight_writer_cleanup) struct chunk_writer *writer = NULL;
	struct flight_writing writing = {0};
	struct flight_book *book = NULL;
	struct flight_user *user = flight_find(flight, scan, &book);
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r, ended, cut;

	if (user)
		flight_flush(flight, user, book);
	cut = flight_write_now(scan, file, &now);
	r = cut == -EFBIG ? 0 : cut;
	if (r == 0)
		r = chunk_writer_new(&writer, fd, file->size_max);
	if (r < 0)
		return r;
	writing.writer = writer;
	r = flight_compose(flight, user, book, &writing, &now);
	ended = flight_end(&writing, file->reason);
	/* Files cost their user's share of our time, as rounds do. */
	if (user)
		user->debt_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	r = r < 0 ? r : ended;
	return r < 0 ? r : cut;
}
