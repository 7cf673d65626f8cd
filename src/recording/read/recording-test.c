/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a recording with several books and devices, and which chunks are left out. */

#include "recording/read/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording-private.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-hostile.h"
#include "recording/testing/testing-recorder.h"
#include "source/source.h"

#define BOOKS 3u

static struct testing_book books[BOOKS];
static struct testing_recorder recorder;
static struct testing_recorded recorded[BOOKS];
static struct recording *recording;

static void alloc(uint32_t book, uint32_t device, uint64_t address)
{
	const struct testing_op op = {
		.kind = TESTING_ALLOC, .device = device, .buffer = testing_buffer(1, address, 64)};

	testing_op_do(books[book].writer, &op);
}

/* Book 0 has devices 0 and 2, book 1 none, book 2 device 1. */
static void begin(void)
{
	testing_recorder_init(&recorder);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_book_open(&books[i]);
		testing_recorded_init(&recorded[i], &recorder, &books[i], 70 + i);
	}
	alloc(0, 0, 0x1000);
	alloc(0, 2, 0x1000);
	alloc(0, 2, 0x2000);
	alloc(2, 1, 0x1000);
	for (uint32_t i = 0; i < BOOKS; i++)
		testing_recorded_bytes(&recorded[i]);
	testing_recorded_events(&recorded[0], 0, RECORDING_EVENTS_MAX);
	testing_recorded_events(&recorded[0], 2, 1);
	testing_recorded_events(&recorded[2], 1, RECORDING_EVENTS_MAX);
	testing_recorded_events(&recorded[0], 2, RECORDING_EVENTS_MAX);
	testing_recorded_ended(&recorded[2], 9);
}

static void open_it(void)
{
	char why[RECORDING_WHY_SIZE];

	assert(recording_open(&recording, recorder.path, why) == 0);
}

static void end(void)
{
	recording = recording_free(recording);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_recorded_deinit(&recorded[i]);
		testing_book_deinit(&books[i]);
	}
	testing_recorder_deinit(&recorder);
}

UNIT(facts_are_those_of_all_books)
{
	const struct recording_facts *facts;
	const struct recording_owner *owner;

	begin();
	open_it();
	facts = recording_facts(recording);
	assert(facts->books == BOOKS && facts->events == 4 && facts->missed == 0);
	assert(!facts->is_complete && facts->torn == 0 && facts->start_ns < facts->end_ns);
	assert(strcmp(facts->command, "test me") == 0 && strcmp(facts->host, "here") == 0);
	assert(strcmp(facts->path, recorder.path) == 0);
	for (uint32_t i = 0; i < BOOKS; i++) {
		owner = recording_owner(recording, i);
		assert(owner && owner->book.pid == 70 + i && owner->has_ended == (i == 2));
		assert((owner->first_ns > 0) == (i != 1) && owner->first_ns <= owner->last_ns);
	}
	assert(!recording_owner(recording, BOOKS));
	owner = recording_owner(recording, 2);
	assert(owner->ending.has_status && owner->ending.status == 9 && owner->ending.ended_ns);
	assert(recording_owner(recording, 0)->first_ns < recording_owner(recording, 0)->last_ns);
	end();
	/* The end is told by a chunk of its own. */
	begin();
	testing_recorder_end(&recorder);
	open_it();
	assert(recording_facts(recording)->is_complete);
	end();
}

UNIT(a_snapshot_says_of_which_recording_it_is)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_recording described;

	begin();
	open_it();
	described = recording_describe(recording);
	assert(described.file == recording_facts(recording)->path && described.events == 4);
	assert(described.start_ns == recording_facts(recording)->start_ns);
	assert(described.end_ns == recording_facts(recording)->end_ns && described.missed == 0);
	recording_tell(recording, snapshot);
	end(); /* the text outlives the recording */
	assert(strcmp(snapshot->recording.file, recorder.path) == 0);
	snapshot_free(snapshot);
}

UNIT(events_of_gaps_are_missed)
{
	begin();
	for (uint32_t i = 3; i < 10; i++)
		alloc(0, 2, 0x1000 * i);
	testing_recorded_gap(&recorded[0], 2);
	open_it();
	assert(recording_facts(recording)->missed == 7 && recording_facts(recording)->events == 4);
	end();
}

UNIT(streams_are_found_by_book_and_device)
{
	const struct recording_stream *stream;
	struct recording_filter filter = RECORDING_FILTER_ALL;

	begin();
	open_it();
	assert(recording->stream_count == 3);
	stream = recording_find_stream(recording, 0, 2);
	assert(stream && stream->book == 0 && stream->device == 2 && stream->count == 2);
	stream = recording_find_stream(recording, 2, 1);
	assert(stream && stream->book == 2 && stream->count == 1);
	assert(recording_wants(recording, &filter, stream));
	filter.device = 1;
	filter.pid = 72;
	assert(recording_wants(recording, &filter, stream));
	filter.pid = 70;
	assert(!recording_wants(recording, &filter, stream));
	filter.pid = 0;
	filter.device = 0;
	assert(!recording_wants(recording, &filter, stream));
	/* Streams of other books follow in the same array. */
	assert(!recording_find_stream(recording, 0, 1) && !recording_find_stream(recording, 0, 3));
	assert(!recording_find_stream(recording, 1, 1) && !recording_find_stream(recording, 2, 2));
	assert(!recording_find_stream(recording, BOOKS, 0));
	assert(recording_find_stream(recording, 0, 0)->count == 1);
	end();
}

UNIT(stamps_and_times_lead_to_each_other)
{
	const struct recording_known *book;
	uint64_t start, now;

	begin();
	open_it();
	book = &recording->books[0];
	start = book->timebase.start;
	now = book->timebase.now;
	assert(start < now && recording_stamp(book, start - 1) == 0);
	assert(recording_stamp(book, now) == UINT64_MAX);
	assert(recording_stamp(book, now - 1) < UINT64_MAX);
	for (uint64_t i = 0; i <= 100; i++) {
		uint64_t time = start + (now - 1 - start) * i / 100;
		uint64_t stamp = recording_stamp(book, time);

		assert(timebase_ns(&book->timebase, stamp) <= time);
		assert(timebase_ns(&book->timebase, stamp + 1) > time);
	}
	end();
}

UNIT(a_stream_begins_with_the_first_event_that_its_keyframe_knows)
{
	const struct recording_stream *stream;
	uint64_t first, time;

	testing_recorder_init(&recorder);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_book_open(&books[i]);
		testing_recorded_init(&recorded[i], &recorder, &books[i], 70 + i);
	}
	alloc(0, 0, 0x1000);
	testing_recorded_bytes(&recorded[0]);
	testing_recorded_state(&recorded[0], 0);
	testing_recorded_events(&recorded[0], 0, RECORDING_EVENTS_MAX);
	testing_recorded_keyframe(&recorded[0], 0);
	open_it();
	stream = recording_find_stream(recording, 0, 0);
	assert(stream->count == 3);
	assert(recording_tells(recording, stream, 0, &first));
	assert(recording_tells(recording, stream, 1, &time) && first <= time);
	assert(!recording_tells(recording, stream, 2, &time)); /* another keyframe */
	end();
}

UNIT(a_sum_is_of_the_wanted_types)
{
	uint64_t bytes[BOOK_TYPES] = {1, 10, 100};
	struct recording_filter filter = RECORDING_FILTER_ALL;

	bytes[BOOK_TYPES - 1] = 1000;
	assert(recording_sum(&filter, bytes) == 1111);
	filter.types = 1;
	assert(recording_sum(&filter, bytes) == 1);
	filter.types = 1 << 1 | 1 << 2;
	assert(recording_sum(&filter, bytes) == 110);
	filter.types = 1u << (BOOK_TYPES - 1);
	assert(recording_sum(&filter, bytes) == 1000);
}

UNIT(moments_lie_in_the_recording)
{
	struct recording_moment moment;

	begin();
	open_it();
	recording_moment_at(recording, 1, &moment);
	assert(moment.time_ns == recording_facts(recording)->start_ns);
	assert(moment.book == RECORDING_NONE && moment.device == RECORDING_NONE);
	recording_moment_at(recording, UINT64_MAX, &moment);
	assert(moment.time_ns == recording_facts(recording)->end_ns);
	recording_moment_at(recording, recording_facts(recording)->start_ns + 1, &moment);
	assert(moment.time_ns == recording_facts(recording)->start_ns + 1);
	end();
}

UNIT(a_file_that_is_no_recording_is_told)
{
	struct recording *other = NULL;
	char why[RECORDING_WHY_SIZE];
	FILE *file = fopen(unit_path("text"), "we");

	assert(file && fputs("a text", file) >= 0 && fclose(file) == 0);
	assert(recording_open(&other, unit_path("text"), why) < 0 && !other);
	assert(strstr(why, unit_path("text")) && !strchr(why, '\n'));
	assert(recording_open(&other, unit_path("nothing"), why) == -ENOENT && !other);
	assert(strstr(why, "No such file"));
	assert(!recording_is_file(unit_path("text")) && !recording_is_file(unit_path("nothing")));
	assert(truncate(unit_path("text"), 3) == 0 && !recording_is_file(unit_path("text")));
	recording_free(NULL);
}

/* A recording with a chunk whose entry, at @offset, has other bytes. */
static struct recording *patched(const struct testing_chunks *good, size_t chunk, size_t offset,
				 const void *bytes, size_t length)
{
	uint8_t patch[64] = {[1] = (uint8_t)chunk, [3] = (uint8_t)offset, [5] = (uint8_t)length};
	struct recording *hostile = NULL;
	char path[64], why[RECORDING_WHY_SIZE];
	int fd;

	memcpy(patch + 6, bytes, length);
	fd = testing_hostile_new(good, patch, 6 + length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert(recording_open(&hostile, path, why) == 0);
	assert(close(fd) == 0);
	return hostile;
}

static size_t chunk_of(const struct testing_chunks *chunks, uint32_t kind, uint32_t book)
{
	for (size_t i = 0; i < chunks->count; i++) {
		if (chunks->chunks[i].head.entry.kind == kind &&
		    chunks->chunks[i].head.entry.book == book)
			return i;
	}
	assert(!"no such chunk");
	return 0;
}

UNIT(chunks_that_do_not_fit_are_left_out)
{
	const uint32_t none = 77, small = sizeof(struct recording_book) - 1, kind = 99;
	struct testing_chunks good = {0};
	struct recording *hostile;

	begin();
	testing_chunks_read(&good, recorder.path);
	/* A book that is not the next one: all that belongs to it and to later ones has no book. */
	hostile = patched(&good, chunk_of(&good, RECORDING_BOOK, 1),
			  offsetof(struct recording_entry, book), &none, sizeof(none));
	assert(recording_facts(hostile)->books == 1 && recording_facts(hostile)->events == 3);
	assert(hostile->stream_count == 2);
	recording_free(hostile);
	/* One that is too short. */
	hostile = patched(&good, chunk_of(&good, RECORDING_BOOK, 2),
			  offsetof(struct recording_entry, size), &small, sizeof(small));
	assert(recording_facts(hostile)->books == 2);
	recording_free(hostile);
	/* Events and an end of no book. */
	hostile = patched(&good, chunk_of(&good, RECORDING_EVENTS, 2),
			  offsetof(struct recording_entry, book), &none, sizeof(none));
	assert(recording_facts(hostile)->events == 3 && hostile->stream_count == 2);
	recording_free(hostile);
	hostile = patched(&good, chunk_of(&good, RECORDING_ENDED, 2),
			  offsetof(struct recording_entry, book), &none, sizeof(none));
	assert(!recording_owner(hostile, 2)->has_ended);
	recording_free(hostile);
	/* A kind of a later version. */
	hostile = patched(&good, chunk_of(&good, RECORDING_EVENTS, 2),
			  offsetof(struct recording_entry, kind), &kind, sizeof(kind));
	assert(recording_facts(hostile)->events == 3 && hostile->stream_count == 2);
	recording_free(hostile);
	testing_chunks_deinit(&good);
	end();
}

/* Which devices have peaks in a snapshot of the end; a bit for each. */
static uint32_t peaks_of(const struct snapshot_request *request)
{
	const struct recording_moment moment = {.time_ns = recording_facts(recording)->end_ns,
						.book = RECORDING_NONE,
						.device = RECORDING_NONE};
	struct snapshot *snapshot = snapshot_new(1);
	struct source *source;
	uint32_t devices = 0;

	assert(recording_source_new(&source, recording, &moment) == 0);
	assert(source_collect(source, request, snapshot) == 0);
	for (size_t i = 0; i < snapshot->peak_count; i++)
		devices |= 1u << snapshot->peaks[i].device;
	source_free(source);
	snapshot_free(snapshot);
	return devices;
}

UNIT(peaks_are_those_of_the_wanted_devices)
{
	struct snapshot_request request = {.buffers = true, .ended = true, .at_peak = true};

	begin();
	open_it();
	assert(peaks_of(&request) == (1u << 0 | 1u << 1 | 1u << 2));
	request.filter = (struct filter){.device_count = 1, .devices = {{.value = 2}}};
	assert(peaks_of(&request) == 1u << 2);
	request.filter = (struct filter){.pid = 72};
	assert(peaks_of(&request) == 1u << 1);
	request.filter = (struct filter){.has_type = true, .type = 0};
	assert(peaks_of(&request) == 0);
	request.filter.type = 1;
	assert(peaks_of(&request) == (1u << 0 | 1u << 1 | 1u << 2));
	end();
}
