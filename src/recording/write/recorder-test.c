/* SPDX-License-Identifier: Apache-2.0 */

/* What is in the file is what was in the book: to the event, to the counter, to the byte. */

#include "recording/write/recorder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/testing-memory.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-recording.h"
#include "recording/testing/testing-replay.h"
#include "source/books/scan.h"

static const char *test_path(void)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/test.ttrec", unit_dir());
	return path;
}

/* The end of the replay is the book as it is. */
static void assert_is_read(const struct testing_replay *replay, struct reader *reader,
			   uint32_t device, enum view_owner owner)
{
	struct view *view = calloc(1, sizeof(*view));
	struct view_iterator it = {0};
	uint64_t live = 0;

	assert(view && view_read(view, reader, device, owner) == 0);
	assert(view->adds_up && view->number == replay->number);
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		assert(replay->hot[t].bytes == view->hot[t].bytes);
		assert(replay->hot[t].buffers == view->hot[t].buffers);
		assert(replay->hot[t].allocs == view->hot[t].allocs);
		assert(replay->hot[t].frees == view->hot[t].frees);
		assert(replay->hot[t].peak == view->hot[t].peak);
		assert(replay->hot[t].peak_time == view->hot[t].peak_time);
	}
	while (view_next(view, &it)) {
		assert(view_slot(&it) < replay->table.count);
		assert(memcmp(it.record, &replay->table.records[view_slot(&it)],
			      sizeof(*it.record)) == 0);
		live++;
	}
	for (uint32_t slot = 0; slot < replay->table.count; slot++)
		live -= (replay->table.records[slot].meta & BOOK_META_LIVE) != 0;
	assert(live == 0);
	view_deinit(view);
	free(view);
}

static void assert_is_book(const struct testing_replay *replay, struct testing_recording *recording,
			   uint32_t device)
{
	assert_is_read(replay, &recording->book.reader, device, VIEW_LIVING);
}

/* Makes the book's bytes again, as a reader does, and compares all but what events change. */
static void assert_bytes_are_book(const struct testing_chunks *chunks,
				  struct testing_recording *recording)
{
	uint8_t *bytes = calloc(1, recording->book.size);
	const struct testing_chunk *book = testing_chunks_find(chunks, RECORDING_BOOK, 0);
	const struct testing_chunk *chunk;
	struct book_arena arenas[BOOK_ARENA_COUNT];

	assert(bytes && book && book->head.entry.size == sizeof(struct recording_book));
	memcpy(bytes, book->contents + offsetof(struct recording_book, header), BOOK_PAGE);
	for (size_t n = 0; (chunk = testing_chunks_find(chunks, RECORDING_BYTES, n)); n++) {
		uint32_t count = 0;

		for (uint32_t at = 0; at < chunk->head.entry.size; count++) {
			struct recording_bytes head;

			memcpy(&head, chunk->contents + at, sizeof(head));
			at += sizeof(head);
			assert(head.offset + head.length <= recording->book.size);
			memcpy(bytes + head.offset, chunk->contents + at, head.length);
			at += (head.length + 7) / 8 * 8;
		}
		assert(count == chunk->head.entry.count);
	}
	/* Up to the shards, and what is in the arenas. */
	assert(memcmp(bytes, recording->book.base, BOOK_SHARDS_OFFSET) == 0);
	memcpy(arenas, bytes + BOOK_ARENAS_OFFSET, sizeof(arenas));
	for (uint32_t kind = 0; kind < BOOK_ARENA_COUNT; kind++) {
		const uint64_t segment = (uint64_t)BOOK_ARENA_UNITS * BOOK_UNIT;

		for (uint64_t from = 0; from < arenas[kind].used; from += segment) {
			uint32_t unit = arenas[kind].directory[from / segment];
			uint64_t at = book_unit_offset(unit);
			uint64_t length = bits_min(arenas[kind].used - from, segment);

			assert(!unit || memcmp(bytes + at, recording->book.base + at, length) == 0);
		}
	}
	free(bytes);
}

static void round_once(struct testing_recording *recording)
{
	unsigned int wait_ms;

	assert(recorder_round(recording->recorder, &wait_ms) == 0);
}

UNIT(everything_from_the_first_event_on_is_in_the_file)
{
	struct testing_recording recording;
	struct testing_chunks chunks;
	uint64_t events = 0;

	testing_recording_start(&recording, test_path(), 16384, true);
	for (uint32_t i = 0; i < 300; i++) {
		recording.devices = i < 100 ? 1 : 3; /* devices that come later */
		testing_recording_act(&recording, 1000);
		round_once(&recording);
	}
	testing_recording_finish(&recording, true);
	testing_chunks_read(&chunks, test_path());
	assert(chunks.torn == 0);
	for (uint32_t device = 0; device < 3; device++) {
		struct testing_replay replay;

		testing_replay(&replay, &chunks, 0, device);
		assert(replay.first == 0 && replay.missed == 0);
		assert(replay.events == replay.number);
		assert_is_book(&replay, &recording, device);
		events += replay.events;
		testing_replay_deinit(&replay);
	}
	assert(events == recorder_sums(recording.recorder)->events);
	assert(recorder_sums(recording.recorder)->missed == 0);
	assert_bytes_are_book(&chunks, &recording);
	assert(testing_chunks_count(&chunks, RECORDING_HEAD) == 1);
	assert(testing_chunks_count(&chunks, RECORDING_ENDED) == 1);
	assert(testing_chunks_count(&chunks, RECORDING_END) == 1);
	testing_chunks_deinit(&chunks);
	testing_recording_deinit(&recording);
}

/* Each part of them begins in the middle of a segment, and some go beyond its end. */
UNIT(texts_of_several_segments_are_in_the_file)
{
	struct testing_recording recording;
	struct testing_chunks chunks;

	testing_recording_start(&recording, test_path(), 16384, true);
	for (uint32_t i = 0; i < 7; i++) {
		testing_recording_fill(&recording, 400000);
		/* Takes room in the book: the next segment is not the neighbour of the one before. */
		recording.devices = 1 + i / 2;
		testing_recording_act(&recording, 1000);
		assert(recorder_flush(recording.recorder, recording.scan) == 0);
	}
	testing_recording_finish(&recording, false);
	testing_chunks_read(&chunks, test_path());
	assert_bytes_are_book(&chunks, &recording);
	testing_chunks_deinit(&chunks);
	testing_recording_deinit(&recording);
}

/* The last one is the first to end. */
UNIT(books_end_in_any_order)
{
	const struct ending ended = {.ended_ns = 5};
	struct testing_recording recording;
	struct testing_book other[2];
	struct scan_book *scans[2];
	struct testing_chunks chunks;

	testing_recording_start(&recording, test_path(), 4096, true);
	for (uint32_t i = 0; i < 2; i++) {
		const struct testing_op op = {.kind = TESTING_ALLOC,
					      .buffer = testing_buffer(0, 0x1000, 10)};
		int fd;

		testing_book_open(&other[i]);
		testing_op_do(other[i].writer, &op);
		fd = fcntl(other[i].fd, F_DUPFD_CLOEXEC, 0);
		assert(fd >= 0 && scan_book_new_consume(&scans[i], fd) == 0);
		assert(recorder_add(recording.recorder, scans[i], true) == 0);
	}
	testing_recording_act(&recording, 100);
	round_once(&recording);
	for (uint32_t i = 0; i < 2; i++)
		assert(recorder_book_size(recording.recorder, scans[i]) > 0);
	assert(recorder_end_book(recording.recorder, scans[1], &ended, NULL) == 0);
	assert(recorder_book_size(recording.recorder, scans[1]) == 0);
	assert(recorder_book_size(recording.recorder, scans[0]) > 0);
	assert(recorder_end_book(recording.recorder, scans[1], &ended, NULL) == 0); /* no more */
	recorder_drop_book(recording.recorder, scans[1]);
	assert(recorder_end_book(recording.recorder, scans[0], &ended, NULL) == 0);
	testing_recording_finish(&recording, true);
	assert(recorder_sums(recording.recorder)->books == 3);
	testing_chunks_read(&chunks, test_path());
	assert(testing_chunks_count(&chunks, RECORDING_BOOK) == 3);
	assert(testing_chunks_count(&chunks, RECORDING_ENDED) == 3);
	for (uint32_t i = 0; i < 3; i++)
		assert(testing_chunks_find(&chunks, RECORDING_ENDED, i)->head.entry.book == 2 - i);
	testing_chunks_deinit(&chunks);
	for (uint32_t i = 0; i < 2; i++) {
		scan_book_free(scans[i]);
		testing_book_deinit(&other[i]);
	}
	testing_recording_deinit(&recording);
}

UNIT(gaps_say_exactly_what_is_missing)
{
	struct testing_recording recording;
	struct testing_chunks chunks;
	uint32_t gaps = 0;

	testing_recording_start(&recording, test_path(), BOOK_RING_MIN, true);
	for (uint32_t i = 0; i < 200; i++) {
		testing_recording_act(&recording, i % 3 == 0 ? 5000 : 700);
		round_once(&recording);
	}
	testing_recording_finish(&recording, true);
	testing_chunks_read(&chunks, test_path());
	for (uint32_t device = 0; device < 2; device++) {
		struct testing_replay replay;

		testing_replay(&replay, &chunks, 0, device);
		assert(replay.first == 0 && replay.events + replay.missed == replay.number);
		assert_is_book(&replay, &recording, device);
		gaps += replay.gaps;
		testing_replay_deinit(&replay);
	}
	assert(gaps > 50 && gaps == recorder_sums(recording.recorder)->gaps);
	testing_chunks_deinit(&chunks);
	testing_recording_deinit(&recording);
}

/* Begins when there are more events than the ring has: with what the ring still knows. */
UNIT(a_recording_that_begins_late_begins_in_the_past)
{
	struct testing_recording recording;
	struct testing_chunks chunks;

	testing_recording_start(&recording, test_path(), 4096, false);
	testing_recording_act(&recording, 50000);
	for (uint32_t i = 0; i < 20; i++) {
		round_once(&recording);
		testing_recording_act(&recording, 1000);
	}
	testing_recording_finish(&recording, false);
	testing_chunks_read(&chunks, test_path());
	for (uint32_t device = 0; device < 2; device++) {
		struct testing_replay replay;

		testing_replay(&replay, &chunks, 0, device);
		assert(replay.first > 10000 && replay.gaps == 0);
		assert(replay.events > 10000 + 3000);
		assert(replay.number - replay.first == replay.events);
		assert_is_book(&replay, &recording, device);
		testing_replay_deinit(&replay);
	}
	assert_bytes_are_book(&chunks, &recording);
	assert(testing_chunks_count(&chunks, RECORDING_ENDED) == 0);
	testing_chunks_deinit(&chunks);
	testing_recording_deinit(&recording);
}

/* Sums over the events, as a reader would make them. */
UNIT(sites_are_the_sums_of_their_events)
{
	const struct testing_chunk *chunk, *last = NULL;
	struct testing_recording recording;
	struct testing_chunks chunks;
	struct testing_replay replay;
	uint64_t allocs = 0, frees = 0, live = 0, lives = 0, bytes = 0;
	struct recording_site site;

	testing_recording_start(&recording, test_path(), 16384, true);
	recording.devices = 1;
	for (uint32_t i = 0; i < 40; i++) {
		testing_recording_act(&recording, 1000);
		round_once(&recording);
	}
	testing_recording_finish(&recording, true);
	testing_chunks_read(&chunks, test_path());
	testing_replay(&replay, &chunks, 0, 0);
	for (size_t n = 0; (chunk = testing_chunks_find(&chunks, RECORDING_SITES, n)); n++)
		last = chunk;
	assert(last && last->head.entry.last == replay.number);
	assert(last->head.entry.size == last->head.entry.count * sizeof(site));
	for (uint32_t i = 0; i < last->head.entry.count; i++) {
		memcpy(&site, last->contents + i * sizeof(site), sizeof(site));
		allocs += site.allocs;
		frees += site.frees;
		live += site.live_bytes;
		assert(site.alloc_bytes - site.free_bytes == site.live_bytes);
		assert(site.high_bytes >= site.live_bytes);
		for (uint32_t k = 0; k < RECORDING_LIVES; k++)
			lives += site.lives[k];
	}
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		bytes += replay.hot[t].bytes;
		allocs -= replay.hot[t].buffers; /* those that still live */
	}
	assert(lives == frees && allocs == frees && live == bytes);
	testing_replay_deinit(&replay);
	testing_chunks_deinit(&chunks);
	testing_recording_deinit(&recording);
}

/* A golden book as a file that a scan could have found. */
static struct scan_book *golden_book(const char *name)
{
	struct testing_memory memory;
	struct scan_book *book;
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/golden/%s.book", testing_corpus(), name);
	testing_memory_load(&memory, path);
	fd = memfd_create("a-golden-book", MFD_CLOEXEC);
	assert(fd >= 0 && ftruncate(fd, (off_t)memory.file.size) == 0);
	for (uint64_t at = 0; at < memory.file.size; at += BOOK_PAGE) {
		if (memory.is_data[at / BOOK_PAGE])
			assert(pwrite(fd, memory.base + at, BOOK_PAGE, (off_t)at) == BOOK_PAGE);
	}
	testing_memory_deinit(&memory);
	assert(scan_book_new_consume(&book, fd) == 0);
	return book;
}

static void record_golden(const char *name)
{
	const struct recorder_options options = {0};
	const struct ending ended = {0};
	struct scan_book *book = golden_book(name);
	struct testing_chunks chunks;
	struct recorder *recorder;
	int fd = open(test_path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint32_t devices = 0;

	assert(fd >= 0 && recorder_new(&recorder, fd, &options) == 0);
	assert(recorder_add(recorder, book, false) == 0);
	assert(recorder_end_book(recorder, book, &ended, NULL) == 0);
	assert(recorder_finish(recorder, "ended", NULL) == 0);
	assert(recorder_sums(recorder)->unreadable == 0);
	testing_chunks_read(&chunks, test_path());
	for (int64_t device = reader_next_shard(&book->reader, 0); device >= 0;
	     device = reader_next_shard(&book->reader, (uint32_t)device + 1)) {
		struct testing_replay replay;

		testing_replay(&replay, &chunks, 0, (uint32_t)device);
		assert_is_read(&replay, &book->reader, (uint32_t)device, VIEW_DEAD);
		testing_replay_deinit(&replay);
		devices++;
	}
	assert(devices > 0 || strstr(name, "empty"));
	testing_chunks_deinit(&chunks);
	recorder_free(recorder);
	scan_book_free(book);
	close(fd);
}

UNIT(books_of_every_version_can_be_recorded)
{
	static const char *const names[] = {
		"v1-died",  "v1-empty",      "v1-everything", "v1-wrapped", "v2-died",
		"v2-empty", "v2-everything", "v2-spaces",     "v2-wrapped",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		record_golden(names[i]);
}
