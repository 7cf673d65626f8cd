/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a book has beside its events. The recorder keeps a copy of what the file already has, reads the
 * book, and writes what differs; arenas only grow, so of them only the end is read. It is written
 * before the events that were read before it, so that no event names anything that is not there.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/clock.h"
#include "recording/write/recorder-private.h"
#include "source/books/scan.h"

#define BYTES_GRAIN 32u /* what is compared at once */
#define BYTES_CHUNK (UINT64_C(1) << 20)
#define BYTES_HALF 2048u /* where the header's second half begins */
#define BYTES_ARENA_SEGMENT ((uint64_t)BOOK_ARENA_UNITS * BOOK_UNIT)
#define BYTES_ARENA_MAX (BOOK_ARENA_SEGMENTS * BYTES_ARENA_SEGMENT)

/* Pages that are never touched cost nothing, and are zeros as in a reader's new book. */
int recorder_bytes_new(struct recorder_book *book)
{
	void *shadow = mmap(NULL, BOOK_POOL_OFFSET, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (shadow == MAP_FAILED)
		return -ENOMEM;
	book->shadow = shadow;
	memcpy(book->shadow, &book->book->reader.header, sizeof(struct book_header));
	return 0;
}

static int bytes_write(struct recorder *recorder, struct recorder_book *book)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_BYTES, RECORDING_NONE);
	const struct chunk_part part = {recorder->bytes, recorder->bytes_used};
	int r;

	if (recorder->bytes_used == 0)
		return 0;
	entry.count = recorder->bytes_count;
	r = chunk_writer_add(recorder->writer, &entry, &part, 1);
	recorder->bytes_used = 0;
	recorder->bytes_count = 0;
	return r;
}

/* Adds a range; ranges are at most RECORDER_SCRATCH long. */
static int bytes_put(struct recorder *recorder, struct recorder_book *book, uint64_t offset,
		     const uint8_t *from, uint32_t length)
{
	const struct recording_bytes head = {.offset = offset, .length = length};
	uint8_t *to = recorder->bytes + recorder->bytes_used;
	uint64_t padded = bits_align_up(length, 8);

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), from, length);
	memset(to + sizeof(head) + length, 0, padded - length);
	recorder->bytes_used += sizeof(head) + padded;
	recorder->bytes_count++;
	return recorder->bytes_used >= BYTES_CHUNK ? bytes_write(recorder, book) : 0;
}

/* What differs from the file of a range that was read; both ends are multiples of 8. */
static int bytes_compare(struct recorder *recorder, struct recorder_book *book, uint64_t offset,
			 const uint8_t *fresh, uint32_t length)
{
	uint8_t *shadow = book->shadow + offset;
	uint32_t from = 0;
	int r = 0;

	if (memcmp(shadow, fresh, length) == 0)
		return 0;
	for (uint32_t at = 0; at < length && r == 0; at += BYTES_GRAIN) {
		uint32_t one = (uint32_t)bits_min(length - at, BYTES_GRAIN);
		bool is_same = memcmp(shadow + at, fresh + at, one) == 0;

		if (is_same && from < at)
			r = bytes_put(recorder, book, offset + from, fresh + from, at - from);
		if (is_same)
			from = at + one;
	}
	if (r == 0 && from < length)
		r = bytes_put(recorder, book, offset + from, fresh + from, length - from);
	memcpy(shadow, fresh, length);
	return r;
}

/* A range before the pool. Holes are zeros, as they are in the copy at first. */
static int bytes_range(struct recorder *recorder, struct recorder_book *book, uint64_t offset,
		       uint64_t length)
{
	struct book_file *file = book->book->reader.file;

	while (length > 0) {
		uint32_t one = (uint32_t)bits_min(length, RECORDER_SCRATCH);
		int r = file_read(file, offset, recorder->scratch, one);

		if (r == 0)
			r = bytes_compare(recorder, book, offset, recorder->scratch, one);
		if (r < 0)
			return r;
		offset += one;
		length -= one;
	}
	return 0;
}

/* The bytes of an arena up to @to that are not in the file, which lie in segments. */
static int bytes_arena(struct recorder *recorder, struct recorder_book *book, uint32_t kind,
		       const struct book_arena *arena, uint64_t to)
{
	struct reader *reader = &book->book->reader;
	uint64_t at = book->arena_used[kind];

	while (at < to) {
		uint32_t unit = arena->directory[at / BYTES_ARENA_SEGMENT];
		uint64_t within = at % BYTES_ARENA_SEGMENT;
		uint32_t one = (uint32_t)bits_min(bits_min(to - at, BYTES_ARENA_SEGMENT - within),
						  RECORDER_SCRATCH);
		uint64_t offset = book_unit_offset(unit) + within;
		int r;

		if (unit == 0)
			return 0; /* the first id, which means none, is used before there is room */
		if (!reader_segment_is(reader, unit, BOOK_ARENA_UNITS, kind, BOOK_SEGMENT_ARENA))
			return -EBADMSG;
		r = file_read(reader->file, offset, recorder->scratch, one);
		if (r == 0)
			r = bytes_put(recorder, book, offset, recorder->scratch, one);
		if (r < 0)
			return r;
		at += one;
		book->arena_used[kind] = at;
	}
	return 0;
}

/* First what was added, then the page that says so. */
static int bytes_arenas(struct recorder *recorder, struct recorder_book *book)
{
	struct book_arena arenas[BOOK_ARENA_COUNT];
	int r = file_read(book->book->reader.file, BOOK_ARENAS_OFFSET, arenas, sizeof(arenas));

	for (uint32_t kind = 0; kind < BOOK_ARENA_COUNT && r == 0; kind++) {
		uint64_t used = bits_min(arenas[kind].used, BYTES_ARENA_MAX);

		if (used > book->arena_used[kind])
			r = bytes_arena(recorder, book, kind, &arenas[kind], used);
	}
	if (r < 0)
		return r;
	return bytes_compare(recorder, book, BOOK_ARENAS_OFFSET, (const uint8_t *)arenas,
			     sizeof(arenas));
}

/* Entries that were claimed; what they count changes as long as the owner lives. */
static int bytes_incidents(struct recorder *recorder, struct recorder_book *book)
{
	const struct book_header *header = &book->book->reader.header;

	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++) {
		uint64_t count = bits_min(header->incident_count[kind], BOOK_INCIDENTS_PER_KIND);
		int r = count == 0 ? 0
				   : bytes_range(recorder, book, book_incident_offset(kind, 0),
						 count * sizeof(struct book_incident));

		if (r < 0)
			return r;
	}
	return 0;
}

/* Pages with declared devices; the others are holes. */
static int bytes_devices(struct recorder *recorder, struct recorder_book *book)
{
	struct book_file *file = book->book->reader.file;
	const uint64_t end = book_device_offset(BOOK_DEVICES);
	int64_t at = file_next_data(file, BOOK_DEVICES_OFFSET);

	while (at >= 0 && (uint64_t)at < end) {
		uint64_t page = bits_align_down((uint64_t)at, BOOK_PAGE);
		int r = bytes_range(recorder, book, page, BOOK_PAGE);

		if (r < 0)
			return r;
		at = file_next_data(file, page + BOOK_PAGE);
	}
	return at == -ENXIO || at >= 0 ? 0 : (int)at;
}

/* Everything that is not a device's own: from the header to the table of segments. */
static int bytes_all(struct recorder *recorder, struct recorder_book *book)
{
	const struct book_header *header = &book->book->reader.header;
	uint64_t units = bits_min(header->pool_next, book->book->reader.file->size / BOOK_UNIT);
	int r = bytes_arenas(recorder, book);

	if (r == 0)
		r = bytes_range(recorder, book, BOOK_SEGMENTS_OFFSET,
				bits_min(units, BOOK_SIZE_MAX / BOOK_UNIT) *
					sizeof(struct book_segment));
	if (r == 0 && header->mark_count)
		r = bytes_range(recorder, book, BOOK_MARKS_OFFSET,
				BOOK_MARKS * sizeof(struct book_mark));
	if (r == 0)
		r = bytes_incidents(recorder, book);
	if (r == 0)
		r = bytes_devices(recorder, book);
	if (r == 0)
		r = bytes_range(recorder, book, BYTES_HALF, BOOK_PAGE - BYTES_HALF);
	return r;
}

/*
 * A book that contradicts itself here, or cannot be read, is recorded without it: only failures of the
 * recording itself are passed on.
 */
int recorder_bytes_sync(struct recorder *recorder, struct recorder_book *book)
{
	if (reader_refresh(&book->book->reader) == 0)
		(void)bytes_all(recorder, book); /* the writer knows its own failures */
	book->synced_ns = clock_ns(CLOCK_MONOTONIC);
	if (chunk_writer_failed(recorder->writer))
		return chunk_writer_failed(recorder->writer);
	return bytes_write(recorder, book);
}

/* Of a device's page: what is neither a counter nor changed by events. */
int recorder_bytes_shard(struct recorder *recorder, struct recorder_book *book, uint32_t device)
{
	static const struct {
		uint32_t from, to;
	} parts[] = {
		{offsetof(struct book_shard, inexact), offsetof(struct book_shard, graves)},
		{offsetof(struct book_shard, ring_unit), offsetof(struct book_shard, hot)},
		{offsetof(struct book_shard, directory), offsetof(struct book_shard, warm)},
	};
	uint64_t offset = book_shard_offset(device);
	struct book_shard page;
	int r = file_read(book->book->reader.file, offset, &page, sizeof(page));

	for (uint32_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
		r = bytes_compare(recorder, book, offset + parts[i].from,
				  (const uint8_t *)&page + parts[i].from,
				  parts[i].to - parts[i].from);
	if (chunk_writer_failed(recorder->writer))
		return chunk_writer_failed(recorder->writer);
	return 0;
}
