/* SPDX-License-Identifier: Apache-2.0 */

/* The books of a recording, and what the file begins and ends with. */

#include "recording/write/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/timebase.h"
#include "recording/format/texts.h"
#include "recording/write/recorder-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define RECORDER_BYTES ((UINT64_C(1) << 20) + 2 * RECORDER_SCRATCH)
#define RECORDER_SYNC_NS \
	NS_PER_S /* marks and incidents are in the file after that, at the latest */

/*
 * A default ring is full after 16 ms of a million events a second; books that are quiet may wait
 * as long as a burst then leaves half of it.
 */
#define RECORDER_WAIT_MS 8u

struct recording_entry recorder_entry(const struct recorder_book *book, uint32_t kind,
				      uint32_t device)
{
	struct timebase_now now = {.monotonic = clock_ns(CLOCK_MONOTONIC),
				   .realtime = clock_ns(CLOCK_REALTIME)};

	if (book)
		book_now(book->book, &now);
	return (struct recording_entry){
		.kind = kind,
		.book = book ? book->number : RECORDING_NONE,
		.device = device,
		.stamp_first = now.stamp,
		.stamp_last = now.stamp,
		.stamp_now = now.stamp,
		.monotonic_now = now.monotonic,
		.realtime_now = now.realtime,
	};
}

int recorder_put_text(struct recorder *recorder, const struct recording_entry *entry,
		      const struct field *fields, const void *row)
{
	CLEANUP_FREE char *text = NULL;
	struct chunk_part part = {0};
	FILE *stream = open_memstream(&text, &part.length);
	struct emit json = EMIT_INIT(stream);

	if (!stream)
		return -ENOMEM;
	fields_put_row(&json, fields, row);
	if (fclose(stream) != 0)
		return -ENOMEM;
	part.bytes = text;
	return chunk_writer_add(recorder->writer, entry, &part, 1);
}

static int recorder_head(struct recorder *recorder, const struct recorder_options *options)
{
	struct recording_entry entry = recorder_entry(NULL, RECORDING_HEAD, RECORDING_NONE);
	char command[4096] = ""; /* as a person would type it, roughly; "argv" has it exactly */
	struct recording_head head = {
		.program = "ttmem",
		.start_ns = clock_ns(CLOCK_REALTIME),
		.recorder = (uint32_t)getpid(),
		.command = options->argv ? command : NULL,
		.argv = options->argv,
	};
	struct utsname host = {0};
	size_t used = 0;

	(void)uname(&host); /* cannot fail */
	head.host = host.nodename;
	head.kernel = host.release;
	head.machine = host.machine;
	for (size_t i = 0; head.argv && head.argv[i]; i++, head.argc++) {
		if (used < sizeof(command))
			used += (size_t)snprintf(command + used, sizeof(command) - used, "%s%s",
						 i ? " " : "", head.argv[i]);
	}
	return recorder_put_text(recorder, &entry, recording_head_fields, &head);
}

int recorder_new(struct recorder **ret_recorder, int fd, const struct recorder_options *options)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	int r;

	if (!recorder)
		return -ENOMEM;
	recorder->wait_ms = 1;
	recorder->round_ns = options->round_ns ? options->round_ns : UINT64_MAX;
	recorder->encoded = malloc(columns_bound(RECORDING_EVENTS_MAX));
	recorder->bytes = malloc(RECORDER_BYTES);
	recorder->scratch = malloc(RECORDER_SCRATCH);
	r = recorder->encoded && recorder->bytes && recorder->scratch ? 0 : -ENOMEM;
	if (r == 0)
		r = chunk_writer_new(&recorder->writer, fd, options->size_max);
	if (r == 0)
		r = recorder_head(recorder, options);
	if (r < 0) {
		recorder_free(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

static void recorder_free_book(struct recorder_book *book)
{
	for (size_t i = 0; i < book->count; i++)
		recorder_shard_free(book->shards[i]);
	free(book->shards);
	if (book->shadow)
		munmap(book->shadow, BOOK_POOL_OFFSET);
	free(book);
}

struct recorder *recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return NULL;
	for (size_t i = 0; i < recorder->count; i++)
		recorder_free_book(recorder->books[i]);
	free(recorder->books);
	chunk_writer_free(recorder->writer);
	view_deinit(&recorder->view);
	free(recorder->encoded);
	free(recorder->bytes);
	free(recorder->scratch);
	free(recorder);
	return NULL;
}

static int recorder_put_book(struct recorder *recorder, const struct recorder_book *book)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_BOOK, RECORDING_NONE);
	const struct scan_book *from = book->book;
	struct recording_book head = {
		.pid = from->owner.id.pid,
		.ns_pid = from->owner.ns_pid,
		.user_id = from->owner.real_uid,
		.maker_id = book_maker(from),
		.start_ticks = from->owner.id.start_ticks,
		.start_ns = proc_started_ns(from->owner.id.start_ticks),
		.header = from->reader.header,
	};
	const struct chunk_part part = {&head, sizeof(head)};

	memcpy(head.comm, from->owner.comm, bits_min(sizeof(head.comm), sizeof(from->owner.comm)));
	proc_user_name(head.user_id, head.user, sizeof(head.user));
	(void)snprintf(head.container, sizeof(head.container), "%s", from->container);
	entry.count = 1;
	return chunk_writer_add(recorder->writer, &entry, &part, 1);
}

static struct recorder_book *recorder_find(const struct recorder *recorder,
					   const struct scan_book *book)
{
	for (size_t i = 0; i < recorder->count; i++) {
		if (recorder->books[i]->book == book)
			return recorder->books[i];
	}
	return NULL;
}

int recorder_add(struct recorder *recorder, struct scan_book *book, bool is_new)
{
	struct recorder_book **books, *one;
	int r;

	if (recorder->sums.books >= RECORDING_BOOKS_MAX)
		return -EMFILE;
	books = array_grow(recorder->books, &recorder->capacity, recorder->count + 1,
			   sizeof(struct recorder_book *));
	one = calloc(1, sizeof(*one));
	if (books)
		recorder->books = books;
	if (!books || !one) {
		free(one);
		return -ENOMEM;
	}
	one->book = book;
	one->number = recorder->sums.books;
	one->is_new = is_new;
	(void)reader_refresh(&book->reader); /* what cannot be read stays as it was */
	r = recorder_bytes_new(one);
	if (r == 0)
		r = recorder_put_book(recorder, one);
	if (r < 0) {
		recorder_free_book(one);
		return r;
	}
	recorder->sums.books++;
	recorder->books[recorder->count++] = one;
	return 0;
}

static int recorder_add_shard(struct recorder *recorder, struct recorder_book *book,
			      uint32_t device)
{
	struct recorder_shard **shards;
	int r;

	for (size_t i = 0; i < book->count; i++) {
		if (book->shards[i]->device == device)
			return 0;
	}
	shards = array_grow(book->shards, &book->capacity, book->count + 1,
			    sizeof(struct recorder_shard *));
	if (!shards)
		return -ENOMEM;
	book->shards = shards;
	r = recorder_shard_new(&shards[book->count], book, device);
	if (r < 0)
		return r;
	recorder->sums.unreadable += shards[book->count]->is_failed;
	book->count++;
	recorder->shards++;
	return 0;
}

/* The book counts what it makes of devices; as long as that stays the same there is no new one. */
static int recorder_find_shards(struct recorder *recorder, struct recorder_book *book)
{
	struct reader *reader = &book->book->reader;
	uint64_t changes;
	int64_t device;
	int r;

	if (reader_refresh(reader) < 0)
		return 0;
	changes = reader->header.changes;
	if (book->has_looked && changes == book->changes && changes != 0)
		return 0;
	for (device = reader_next_shard(reader, 0); device >= 0;
	     device = reader_next_shard(reader, (uint32_t)device + 1)) {
		r = recorder_add_shard(recorder, book, (uint32_t)device);
		if (r < 0)
			return r;
	}
	book->changes = changes;
	book->has_looked = true;
	return 0;
}

/* 1 if there was something new. */
static int recorder_poll_book(struct recorder *recorder, struct recorder_book *book)
{
	int r = recorder_find_shards(recorder, book), is_new = 0;

	for (size_t i = 0; i < book->count && r >= 0; i++) {
		r = recorder_shard_poll(recorder, book, book->shards[i]);
		is_new |= r > 0;
	}
	if (r >= 0 && clock_ns(CLOCK_MONOTONIC) - book->synced_ns >= RECORDER_SYNC_NS)
		r = recorder_bytes_sync(recorder, book);
	return r < 0 ? r : is_new;
}

int recorder_round(struct recorder *recorder, unsigned int *ret_wait_ms)
{
	int r = chunk_writer_failed(recorder->writer), is_new = 0;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	recorder->sums.waiting = 0;
	for (size_t i = 0; i < recorder->count && r >= 0; i++) {
		r = recorder_poll_book(recorder,
				       recorder->books[recorder->next++ % recorder->count]);
		is_new |= r > 0;
		if (clock_ns(CLOCK_MONOTONIC) - start > recorder->round_ns)
			break;
	}
	recorder->wait_ms =
		is_new ? 1 : (unsigned int)bits_min(recorder->wait_ms * 2, RECORDER_WAIT_MS);
	*ret_wait_ms = recorder->sums.waiting ? 0 : recorder->wait_ms;
	return r < 0 ? r : 0;
}

/* Everything of a book that can still be had. */
static int recorder_close_book(struct recorder *recorder, struct recorder_book *book,
			       struct namer *namer)
{
	int r = recorder_find_shards(recorder, book);

	for (size_t i = 0; i < book->count && r == 0; i++)
		r = recorder_shard_end(recorder, book, book->shards[i]);
	if (r == 0)
		r = recorder_bytes_sync(recorder, book);
	if (r == 0)
		r = recorder_names_write(recorder, book, namer);
	return r;
}

int recorder_flush(struct recorder *recorder, struct scan_book *book)
{
	struct recorder_book *one = recorder_find(recorder, book);
	int r = chunk_writer_failed(recorder->writer);

	if (!one || r < 0)
		return r;
	r = recorder_poll_book(recorder, one);
	for (size_t i = 0; i < one->count && r >= 0; i++)
		r = recorder_shard_flush(recorder, one, one->shards[i]);
	return r < 0 ? r : recorder_bytes_sync(recorder, one);
}

int recorder_end_book(struct recorder *recorder, struct scan_book *book,
		      const struct ending *ending, struct namer *namer)
{
	struct recorder_book *one = recorder_find(recorder, book);
	const struct recording_ended ended = {
		.realtime = ending->ended_ns,
		.status = ending->status,
		.is_status_known = ending->has_status,
	};
	const struct chunk_part part = {&ended, sizeof(ended)};
	struct recording_entry entry;
	int r = chunk_writer_failed(recorder->writer);

	if (!one)
		return 0;
	if (r == 0)
		r = recorder_close_book(recorder, one, namer);
	entry = recorder_entry(one, RECORDING_ENDED, RECORDING_NONE);
	entry.count = 1;
	if (r == 0)
		r = chunk_writer_add(recorder->writer, &entry, &part, 1);
	recorder_drop_book(recorder, book);
	return r;
}

void recorder_drop_book(struct recorder *recorder, const struct scan_book *book)
{
	for (size_t i = 0; i < recorder->count; i++) {
		if (recorder->books[i]->book != book)
			continue;
		recorder->shards -= recorder->books[i]->count;
		recorder_free_book(recorder->books[i]);
		recorder->books[i] = recorder->books[--recorder->count];
		return;
	}
}

uint64_t recorder_book_size(const struct recorder *recorder, const struct scan_book *book)
{
	const struct recorder_book *one = recorder_find(recorder, book);
	uint64_t size = 0;

	for (size_t i = 0; one && i < one->count; i++) {
		const struct recorder_shard *shard = one->shards[i];

		size += sizeof(*shard) + shard->table.count * sizeof(*shard->table.records) +
			shard->sites.capacity * sizeof(*shard->sites.sites);
	}
	return size;
}

static int recorder_put_end(struct recorder *recorder, const char *reason)
{
	struct recording_entry entry = recorder_entry(NULL, RECORDING_END, RECORDING_NONE);
	const struct recorder_sums *sums = recorder_sums(recorder);
	char json[512];

	(void)snprintf(json, sizeof(json),
		       "{\"reason\":\"%s\",\"end_ns\":%" PRIu64 ",\"books\":%" PRIu32
		       ",\"events\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"gaps\":%" PRIu32
		       ",\"unreadable\":%" PRIu32 "}",
		       reason, entry.realtime_now, sums->books, sums->events, sums->missed,
		       sums->gaps, sums->unreadable);
	return chunk_writer_end(recorder->writer, &entry, json);
}

int recorder_finish(struct recorder *recorder, const char *reason, struct namer *namer)
{
	int r = chunk_writer_failed(recorder->writer);
	int ended;

	for (size_t i = 0; i < recorder->count && r == 0; i++)
		r = recorder_close_book(recorder, recorder->books[i], namer);
	ended = recorder_put_end(recorder, reason);
	return r < 0 ? r : ended;
}

const struct recorder_sums *recorder_sums(struct recorder *recorder)
{
	recorder->sums.bytes = chunk_writer_size(recorder->writer);
	return &recorder->sums;
}
