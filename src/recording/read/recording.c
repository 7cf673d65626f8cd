/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of a recording once it is open: entries sorted by book and device, so that each
 * stream is a row of chunks in the order in which they were written.
 */

#include "recording/read/recording.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/document-take.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "model/snapshot.h"
#include "recording/format/texts.h"
#include "recording/read/recording-file.h"
#include "recording/read/recording-private.h"

struct recording *recording_free(struct recording *recording)
{
	if (!recording)
		return NULL;
	chunk_file_close(&recording->file);
	chunk_bytes_deinit(&recording->contents);
	recording_namer_free(recording->namer);
	free(recording->path);
	free(recording->command);
	free(recording->host);
	free(recording->books);
	free(recording->streams);
	free(recording->order);
	free(recording);
	return NULL;
}

const struct recording_facts *recording_facts(const struct recording *recording)
{
	return &recording->facts;
}

struct snapshot_recording recording_describe(const struct recording *recording)
{
	const struct recording_facts *facts = &recording->facts;

	return (struct snapshot_recording){
		.file = facts->path,
		.start_ns = facts->start_ns,
		.end_ns = facts->end_ns,
		.events = facts->events,
		.missed = facts->missed,
	};
}

void recording_tell(const struct recording *recording, struct snapshot *snapshot)
{
	const char *path = recording->facts.path;

	snapshot->recording = recording_describe(recording);
	snapshot->recording.file = snapshot_text(snapshot, path, strlen(path));
}

const struct recording_owner *recording_owner(const struct recording *recording, size_t book)
{
	return book < recording->facts.books ? &recording->books[book].owner : NULL;
}

/* Books and their own chunks have no device: they come before the book's streams. */
static uint64_t recording_key(const struct recording_entry *entry)
{
	uint32_t device = 0;

	switch (entry->kind) {
	case RECORDING_EVENTS:
	case RECORDING_KEYFRAME:
	case RECORDING_GAP:
	case RECORDING_SITES:
		device = entry->device + 1;
		break;
	case RECORDING_BYTES:
	case RECORDING_NAMES:
		break;
	default:
		return UINT64_MAX; /* in no row */
	}
	return (uint64_t)entry->book << 32 | device;
}

static int recording_compare(const void *left, const void *right, void *context)
{
	const struct recording *recording = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint64_t first = recording_key(recording_entry(recording, a));
	uint64_t second = recording_key(recording_entry(recording, b));

	if (first != second)
		return bits_compare(first, second);
	return bits_compare(a, b);
}

/* Books are numbered as they appear; what does not fit is left out, with all that belongs to it. */
static int recording_add_book(struct recording *recording, const struct recording_entry *entry)
{
	struct recording_known *book = &recording->books[recording->facts.books];
	struct recording_book *facts = &book->owner.book;
	int r;

	if (entry->book != recording->facts.books || entry->size < sizeof(*facts))
		return 0;
	r = recording_read(recording, entry);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	memcpy(facts, recording->contents.bytes, sizeof(*facts));
	facts->comm[sizeof(facts->comm) - 1] = '\0';
	facts->user[sizeof(facts->user) - 1] = '\0';
	facts->container[sizeof(facts->container) - 1] = '\0';
	recording->facts.books++;
	return 0;
}

static int recording_add_books(struct recording *recording)
{
	size_t most = 0;
	int r = 0;

	for (size_t i = 0; i < recording->file.count; i++)
		most += recording->file.entries[i].kind == RECORDING_BOOK;
	recording->books = calloc(most + 1, sizeof(*recording->books));
	if (!recording->books)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < recording->file.count; i++) {
		if (recording->file.entries[i].kind == RECORDING_BOOK)
			r = recording_add_book(recording, &recording->file.entries[i]);
	}
	return r;
}

/* How the clocks of a book went: from its creation to the last moment that is known. */
static void recording_learn_clocks(struct recording *recording)
{
	for (size_t i = 0; i < recording->file.count; i++) {
		const struct recording_entry *entry = &recording->file.entries[i];

		if (entry->kind == 0 || entry->book >= recording->facts.books ||
		    entry->stamp_now <= recording->books[entry->book].moment.stamp)
			continue;
		recording->books[entry->book].moment = (struct timebase_now){
			.stamp = entry->stamp_now,
			.monotonic = entry->monotonic_now,
			.realtime = entry->realtime_now,
		};
	}
	for (size_t i = 0; i < recording->facts.books; i++) {
		struct recording_known *book = &recording->books[i];
		struct book_header header = book->owner.book.header;

		/* As the machine's, whatever the owner sees: as reader_init() does. */
		header.monotonic_start -= (uint64_t)header.monotonic_offset;
		timebase_init(&book->timebase, &header, &book->moment);
	}
}

static int recording_learn_end(struct recording *recording, const struct recording_entry *entry)
{
	struct recording_owner *owner = &recording->books[entry->book].owner;
	struct recording_ended ended;
	int r = entry->size < sizeof(ended) ? -EBADMSG : recording_read(recording, entry);

	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	memcpy(&ended, recording->contents.bytes, sizeof(ended));
	owner->has_ended = true;
	owner->ending = (struct ending){
		.ended_ns = ended.realtime,
		.has_status = ended.is_status_known,
		.status = ended.status,
	};
	return 0;
}

static void recording_learn_events(struct recording *recording, const struct recording_entry *entry)
{
	struct recording_known *book = &recording->books[entry->book];
	uint64_t first = timebase_ns(&book->timebase, entry->stamp_first);
	uint64_t last = timebase_ns(&book->timebase, entry->stamp_last);

	recording->facts.events += entry->count;
	if (!book->owner.first_ns || first < book->owner.first_ns)
		book->owner.first_ns = first;
	book->owner.last_ns = bits_max(book->owner.last_ns, last);
	if (first && first < recording->facts.start_ns)
		recording->facts.start_ns = first;
	recording->facts.end_ns = bits_max(recording->facts.end_ns, last);
}

/* What the entries say together. */
static int recording_learn(struct recording *recording)
{
	struct recording_facts *facts = &recording->facts;
	int r = 0;

	facts->start_ns = recording->file.entries[0].realtime_now;
	for (size_t i = 0; r == 0 && i < recording->file.count; i++) {
		const struct recording_entry *entry = &recording->file.entries[i];
		bool has_book = entry->book < facts->books;

		if (entry->kind == 0)
			continue;
		facts->end_ns = bits_max(facts->end_ns, entry->realtime_now);
		if (entry->kind == RECORDING_EVENTS && has_book)
			recording_learn_events(recording, entry);
		else if (entry->kind == RECORDING_GAP && has_book)
			facts->missed += entry->last - entry->first + 1;
		else if (entry->kind == RECORDING_ENDED && has_book)
			r = recording_learn_end(recording, entry);
		else if (entry->kind == RECORDING_END)
			facts->is_complete = true;
	}
	facts->torn = recording->file.size - recording->file.end;
	return r;
}

/* Cuts the sorted entries into rows. */
static void recording_cut(struct recording *recording, size_t count)
{
	for (size_t from = 0, to; from < count; from = to) {
		const uint32_t *row = recording->order + from;
		const struct recording_entry *entry = recording_entry(recording, row[0]);
		uint64_t key = recording_key(entry);
		struct recording_known *book = &recording->books[entry->book];

		for (to = from + 1; to < count; to++) {
			if (recording_key(recording_entry(recording, recording->order[to])) != key)
				break;
		}
		if ((uint32_t)key == 0) {
			book->chunks = row;
			book->count = to - from;
			continue;
		}
		if (book->stream_count++ == 0)
			book->first_stream = recording->stream_count;
		recording->streams[recording->stream_count++] = (struct recording_stream){
			.book = entry->book,
			.device = entry->device,
			.chunks = row,
			.count = to - from,
		};
	}
}

static int recording_sort(struct recording *recording)
{
	size_t count = 0, rows = 0;

	recording->order = malloc(recording->file.count * sizeof(*recording->order));
	if (!recording->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < recording->file.count; i++) {
		const struct recording_entry *entry = recording_entry(recording, i);

		if (entry->book < recording->facts.books && recording_key(entry) != UINT64_MAX)
			recording->order[count++] = i;
	}
	if (count > 0)
		qsort_r(recording->order, count, sizeof(*recording->order), recording_compare,
			recording);
	for (size_t i = 0; i < count; i++)
		rows += i == 0 ||
			recording_key(recording_entry(recording, recording->order[i])) !=
				recording_key(recording_entry(recording, recording->order[i - 1]));
	recording->streams = calloc(rows + 1, sizeof(*recording->streams));
	if (!recording->streams)
		return -ENOMEM;
	recording_cut(recording, count);
	return 0;
}

/* Nothing depends on it: a head that cannot be read is none. */
static int recording_read_head(struct recording *recording)
{
	CLEANUP(document_unload) struct json_t *text = NULL;
	struct recording_head head;
	int r = recording_read(recording, &recording->file.entries[0]);

	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	text = document_load((const char *)recording->contents.bytes, recording->contents.size);
	(void)fields_take(text, recording_head_fields, &head, NULL); /* needs no memory */
	recording->command = head.command ? strdup(head.command) : NULL;
	recording->host = head.host ? strdup(head.host) : NULL;
	recording->facts.command = recording->command;
	recording->facts.host = recording->host;
	return 0;
}

/* An honest book has about fifty bytes for each of an event's four. */
#define RECORDING_ROOM_FREE (UINT64_C(1) << 30)
#define RECORDING_ROOM_PER_BYTE 64u

static int recording_load(struct recording *recording)
{
	int r = recording_read_head(recording);

	if (r == 0)
		r = recording_add_books(recording);
	if (r < 0)
		return r;
	recording->room = RECORDING_ROOM_FREE + RECORDING_ROOM_PER_BYTE * recording->file.size;
	recording_learn_clocks(recording);
	r = recording_learn(recording);
	return r < 0 ? r : recording_sort(recording);
}

bool recording_is_file(const char *path)
{
	CLEANUP_CLOSE int fd = recording_file_open(path);
	uint32_t magic = 0;

	/* Nobody can seek in a pipe: nothing is taken from it. */
	return fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       le32toh(magic) == RECORDING_FRAME;
}

int recording_open(struct recording **ret_recording, const char *path,
		   char ret_why[RECORDING_WHY_SIZE])
{
	CLEANUP(recording_cleanup) struct recording *recording = calloc(1, sizeof(*recording));
	int r;

	snprintf(ret_why, RECORDING_WHY_SIZE, "%s: no memory", path);
	if (!recording)
		return -ENOMEM;
	recording->file.fd = -1;
	recording->path = strdup(path);
	if (!recording->path)
		return -ENOMEM;
	recording->facts.path = recording->path;
	r = chunk_file_open(&recording->file, path, ret_why);
	if (r < 0)
		return r;
	r = recording_load(recording);
	if (r < 0) {
		snprintf(ret_why, RECORDING_WHY_SIZE, "%s: %s", path, user_file_error(r));
		return r;
	}
	*ret_recording = cleanup_steal(recording);
	return 0;
}

uint64_t recording_stamp(const struct recording_known *book, uint64_t time_ns)
{
	const struct timebase *timebase = &book->timebase;
	uint64_t length = timebase->now - timebase->start;
	unsigned __int128 reach;

	if (time_ns < timebase->start)
		return 0;
	if (time_ns >= timebase->now || timebase->stamp_now <= timebase->stamp_start)
		return UINT64_MAX;
	/* The last stamp that timebase_ns() does not put after it, which rounds down. */
	reach = (unsigned __int128)(time_ns - timebase->start + 1) *
		(timebase->stamp_now - timebase->stamp_start);
	return timebase->stamp_start + (uint64_t)((reach + length - 1) / length) - 1;
}

const struct recording_stream *recording_find_stream(const struct recording *recording, size_t book,
						     uint32_t device)
{
	const struct recording_known *known;

	if (book >= recording->facts.books)
		return NULL;
	known = &recording->books[book];
	for (size_t i = 0; i < known->stream_count; i++) {
		if (recording->streams[known->first_stream + i].device == device)
			return &recording->streams[known->first_stream + i];
	}
	return NULL;
}

bool recording_wants(const struct recording *recording, const struct recording_filter *filter,
		     const struct recording_stream *stream)
{
	return (filter->pid == 0 || recording->books[stream->book].owner.book.pid == filter->pid) &&
	       (filter->device == RECORDING_NONE || filter->device == stream->device);
}

bool recording_tells(const struct recording *recording, const struct recording_stream *stream,
		     size_t at, uint64_t *ret_time_ns)
{
	const struct timebase *timebase = &recording->books[stream->book].timebase;
	const struct recording_entry *entry = stream_entry(recording, stream, at);
	uint64_t stamp = entry->stamp_first;

	if (entry->kind == RECORDING_SITES || (entry->kind == RECORDING_KEYFRAME && at > 0))
		return false;
	/* What follows the first keyframe may have happened before it was written. */
	for (size_t i = at + 1; entry->kind == RECORDING_KEYFRAME && i < stream->count; i++) {
		const struct recording_entry *next = stream_entry(recording, stream, i);

		if (next->kind != RECORDING_EVENTS)
			continue;
		stamp = bits_min(stamp, next->stamp_first);
		break;
	}
	*ret_time_ns = timebase_ns(timebase, stamp);
	return true;
}

uint64_t recording_sum(const struct recording_filter *filter, const uint64_t bytes[BOOK_TYPES])
{
	uint64_t sum = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (filter->types == 0 || filter->types >> type & 1)
			sum += bytes[type];
	}
	return sum;
}

void recording_moment_at(const struct recording *recording, uint64_t time_ns,
			 struct recording_moment *ret_moment)
{
	*ret_moment = (struct recording_moment){
		.time_ns = bits_min(bits_max(time_ns, recording->facts.start_ns),
				    recording->facts.end_ns),
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
	};
}
