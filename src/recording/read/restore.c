/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a book again as it was: a file in memory with the same bytes at the same offsets. First
 * what was recorded as bytes, up to the events that are needed; then, for each device, the table,
 * the counters, and the last events and frees. Whoever reads it has the checks of any other book's
 * reader, so nothing here has to be right for safety, except for where it writes.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "recording/read/recording-private.h"
#include "recording/read/restore-private.h"
#include "source/books/scan.h"

/* Not one of the names that are taken for books. */
#define RESTORE_NAME "recorded-book"

int restore_write(struct restore *restore, uint64_t offset, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	if (offset > restore->size || length > restore->size - offset)
		return -EBADMSG;
	restore->written += length;
	if (restore->written > restore->recording->room)
		return -EFBIG;
	while (length > 0) {
		ssize_t n = pwrite(restore->fd, from, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return 0;
}

int restore_read(const struct restore *restore, uint64_t offset, void *ret_bytes, size_t length)
{
	ssize_t n = pread(restore->fd, ret_bytes, length, (off_t)offset);

	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EBADMSG;
}

struct replay_cut restore_cut(const struct restore *restore, const struct recording_stream *stream)
{
	const struct recording_moment *moment = restore->moment;

	if (moment->book == stream->book && moment->device == stream->device)
		return (struct replay_cut){.has_number = true, .number = moment->number};
	return (struct replay_cut){.stamp = restore->stamp};
}

/* The first and the last chunk with something of a device that is needed. */
static void restore_reach(const struct restore *restore, uint32_t *ret_first, uint32_t *ret_last)
{
	const struct recording_known *book = restore->book;

	*ret_first = UINT32_MAX;
	*ret_last = 0;
	for (size_t i = 0; i < book->stream_count; i++) {
		const struct recording_stream *stream =
			&restore->recording->streams[book->first_stream + i];
		struct replay_cut cut = restore_cut(restore, stream);
		size_t at;

		*ret_first = (uint32_t)bits_min(*ret_first, stream->chunks[0]);
		if (replay_find(restore->recording, stream, &cut, &at) == 0)
			*ret_last = (uint32_t)bits_max(*ret_last, stream->chunks[at]);
	}
}

static int restore_bytes(struct restore *restore, const struct recording_entry *entry)
{
	const struct chunk_bytes *contents = &restore->recording->contents;
	int r = recording_read(restore->recording, entry);
	size_t at = 0;

	while (r == 0 && at < contents->size) {
		struct recording_bytes head;
		size_t left = contents->size - at;

		if (left < sizeof(head))
			return -EBADMSG;
		memcpy(&head, contents->bytes + at, sizeof(head));
		if (head.length > left - sizeof(head))
			return -EBADMSG;
		r = restore_write(restore, head.offset, contents->bytes + at + sizeof(head),
				  head.length);
		at += bits_min(left, sizeof(head) + bits_align_up(head.length, 8));
	}
	return r;
}

/* What incidents were before bytes of a later time replace them. */
static int restore_keep_repeats(struct restore *restore)
{
	struct book_header header;
	int r = restore_read(restore, 0, &header, sizeof(header));

	restore->repeats =
		calloc(BOOK_INCIDENT_KINDS * BOOK_INCIDENTS_PER_KIND, sizeof(*restore->repeats));
	if (!restore->repeats)
		return -ENOMEM;
	for (uint32_t kind = 0; r == 0 && kind < BOOK_INCIDENT_KINDS; kind++) {
		uint64_t count = bits_min(header.incident_count[kind], BOOK_INCIDENTS_PER_KIND);

		for (uint32_t i = 0; r == 0 && i < count; i++) {
			struct book_incident incident;

			r = restore_read(restore, book_incident_offset(kind, i), &incident,
					 sizeof(incident));
			if (r == 0)
				restore->repeats[kind * BOOK_INCIDENTS_PER_KIND + i] =
					(struct restore_repeats){incident.count,
								 incident.last_time};
		}
	}
	return r;
}

/*
 * What was written before an event in the file is what the event may name. The rest counts if its
 * time had come.
 */
static int restore_all_bytes(struct restore *restore)
{
	uint32_t first, last;
	int r = restore_write(restore, 0, &restore->book->owner.book.header,
			      sizeof(struct book_header));

	restore_reach(restore, &first, &last);
	for (size_t i = 0; r == 0 && i < restore->book->count; i++) {
		uint32_t number = restore->book->chunks[i];
		const struct recording_entry *entry = recording_entry(restore->recording, number);

		if (entry->kind != RECORDING_BYTES ||
		    (number >= first && number >= last && entry->stamp_now > restore->stamp))
			continue;
		if (entry->stamp_now > restore->stamp && !restore->repeats)
			r = restore_keep_repeats(restore);
		if (r == 0)
			r = restore_bytes(restore, entry);
		if (r == -EBADMSG)
			r = 0; /* the others are as good as before */
	}
	return r;
}

/*
 * Bytes are recorded now and then: they may know of what came later. When each repetition was is not
 * in them, so those since the last bytes before the moment are not counted.
 */
static int restore_forget_incident(struct restore *restore, uint32_t kind, uint32_t index)
{
	const uint64_t none = 0;
	const struct restore_repeats *then;
	struct book_incident incident;
	uint64_t offset = book_incident_offset(kind, index);
	int r = restore_read(restore, offset, &incident, sizeof(incident));

	if (r < 0)
		return r;
	if (incident.second.time > restore->stamp)
		return restore_write(restore, offset, &none, sizeof(none));
	if (incident.last_time <= restore->stamp || !restore->repeats)
		return 0;
	then = &restore->repeats[kind * BOOK_INCIDENTS_PER_KIND + index];
	incident.count = bits_max(then->count, 1);
	incident.last_time = bits_max(then->last_time, incident.second.time);
	return restore_write(restore, offset, &incident, sizeof(incident));
}

static int restore_forget_marks(const struct restore *restore, struct book_header *header)
{
	uint64_t count = header->mark_count, first = count > BOOK_MARKS ? count - BOOK_MARKS : 0;

	for (uint64_t i = first; i < count; i++) {
		struct book_mark mark;
		int r = restore_read(restore, BOOK_MARKS_OFFSET + i % BOOK_MARKS * sizeof(mark),
				     &mark, sizeof(mark));

		if (r < 0)
			return r;
		if (mark.time > restore->stamp) {
			header->mark_count = i;
			break;
		}
	}
	return 0;
}

static int restore_forget_closed(struct restore *restore)
{
	for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
		uint64_t at =
			book_device_offset(device) + offsetof(struct book_device, closed_time);
		off_t data = lseek(restore->fd, (off_t)at, SEEK_DATA);
		uint64_t closed = 0;
		int r;

		/* Most devices were never declared: their part of the file is a hole. */
		if (data < 0 || (uint64_t)data >= BOOK_SHARDS_OFFSET)
			break;
		if ((uint64_t)data > at) {
			device = (uint32_t)(((uint64_t)data - BOOK_DEVICES_OFFSET) /
					    sizeof(struct book_device)) -
				 1;
			continue;
		}
		r = restore_read(restore, at, &closed, sizeof(closed));
		if (r == 0 && closed > restore->stamp)
			r = restore_write(restore, at, &(uint64_t){0}, sizeof(closed));
		if (r < 0)
			return r;
	}
	return 0;
}

static int restore_forget(struct restore *restore)
{
	struct book_header header;
	int r = restore_read(restore, 0, &header, sizeof(header));

	if (r == 0)
		r = restore_forget_marks(restore, &header);
	for (uint32_t kind = 0; r == 0 && kind < BOOK_INCIDENT_KINDS; kind++) {
		uint64_t count = bits_min(header.incident_count[kind], BOOK_INCIDENTS_PER_KIND);

		for (uint32_t i = 0; r == 0 && i < count; i++)
			r = restore_forget_incident(restore, kind, i);
	}
	if (r == 0)
		r = restore_forget_closed(restore);
	if (header.closed_time > restore->stamp) {
		header.closed_time = 0;
		header.state = BOOK_STATE_OPEN;
	}
	return r < 0 ? r : restore_write(restore, 0, &header, sizeof(header));
}

static int restore_init(struct restore *restore)
{
	const struct book_header *header = &restore->book->owner.book.header;

	restore->size = header->file_size;
	if (restore->size < BOOK_SIZE_MIN || restore->size > BOOK_SIZE_MAX ||
	    restore->size % BOOK_UNIT)
		return -EBADMSG;
	restore->fd = memfd_create(RESTORE_NAME, MFD_CLOEXEC);
	if (restore->fd < 0 || ftruncate(restore->fd, (off_t)restore->size) < 0)
		return -errno;
	return 0;
}

static void restore_own(const struct restore *restore, struct scan_book *made, size_t number)
{
	const struct recording_owner *owner = &restore->book->owner;
	const struct recording_book *book = &owner->book;

	made->owner = (struct proc_facts){
		.id = recording_process(book),
		.ns_pid = book->ns_pid,
		.real_uid = book->user_id,
		.saved_uid = book->user_id,
	};
	memcpy(made->owner.comm, book->comm,
	       bits_min(sizeof(book->comm), sizeof(made->owner.comm)));
	snprintf(made->container, sizeof(made->container), "%.*s", (int)sizeof(made->container) - 1,
		 book->container);
	made->uid = book->maker_id;
	made->holder = book->pid;
	made->alive = !owner->has_ended || owner->ending.ended_ns > restore->moment->time_ns;
	/* The file that it is in says nothing about it. */
	made->id = (struct book_id){.inode = number + 1};
	made->recorded->moment = restore->book->moment;
	made->recorded->start_ns = book->start_ns;
	memcpy(made->recorded->user, book->user, sizeof(book->user));
}

static int restore_make(struct restore *restore, struct scan_book **ret_book)
{
	int r = restore_init(restore);

	if (r == 0)
		r = restore_all_bytes(restore);
	if (r == 0)
		r = restore_forget(restore);
	free(restore->repeats);
	restore->repeats = NULL;
	if (r < 0)
		return r;
	r = scan_book_new_consume(ret_book, restore->fd);
	if (r == 0)
		restore->reader = &(*ret_book)->reader;
	else
		restore->fd = -1;
	return r > 0 ? -EBADMSG : r;
}

/* Everything but the devices. */
static int restore_begin(struct restore *restore, size_t book, struct scan_book **ret_book)
{
	CLEANUP(scan_book_cleanup) struct scan_book *made = NULL;
	int r;

	if (book >= restore->recording->facts.books)
		return -ENOENT;
	restore->book = &restore->recording->books[book];
	if (restore->moment->time_ns < restore->book->timebase.start)
		return -ENOENT;
	restore->stamp = recording_stamp(restore->book, restore->moment->time_ns);
	r = restore_make(restore, &made);
	if (r < 0) {
		if (!made && restore->fd >= 0)
			close(restore->fd);
		return r;
	}
	made->recorded = calloc(1, sizeof(*made->recorded));
	if (!made->recorded)
		return -ENOMEM;
	restore_own(restore, made, book);
	*ret_book = cleanup_steal(made);
	return 0;
}

static int restore_outline(struct recording *recording, size_t book,
			   const struct recording_moment *moment, struct scan_book **ret_book)
{
	struct restore restore = {.recording = recording, .moment = moment, .fd = -1};

	return restore_begin(&restore, book, ret_book);
}

int recording_outline(struct recording *recording, size_t book, struct scan_book **ret_book)
{
	struct recording_moment end;

	recording_moment_at(recording, UINT64_MAX, &end);
	return restore_outline(recording, book, &end, ret_book);
}

int restore_one(struct recording *recording, const struct recording_stream *stream,
		const struct recording_moment *moment, struct scan_book **ret_book)
{
	CLEANUP(scan_book_cleanup) struct scan_book *made = NULL;
	struct restore restore = {.recording = recording, .moment = moment, .fd = -1};
	int r = restore_begin(&restore, stream->book, &made);

	if (r == 0)
		r = restore_device(&restore, stream);
	if (r == 0)
		*ret_book = cleanup_steal(made);
	return r;
}

int recording_restore(struct recording *recording, size_t book,
		      const struct recording_moment *moment, struct scan_book **ret_book)
{
	CLEANUP(scan_book_cleanup) struct scan_book *made = NULL;
	struct restore restore = {.recording = recording, .moment = moment, .fd = -1};
	int r = restore_begin(&restore, book, &made);

	for (size_t i = 0; r == 0 && i < restore.book->stream_count; i++)
		r = restore_device(&restore, &recording->streams[restore.book->first_stream + i]);
	if (r == 0)
		*ret_book = cleanup_steal(made);
	return r;
}

/* The first chunk after @at that has or lacks events, or says what there is; NULL = none. */
static const struct recording_entry *restore_after(const struct recording *recording,
						   const struct recording_stream *stream, size_t at)
{
	for (size_t i = at + 1; i < stream->count; i++) {
		const struct recording_entry *entry = stream_entry(recording, stream, i);

		if (entry->kind != RECORDING_SITES)
			return entry;
	}
	return NULL;
}

static bool restore_knows(const struct recording *recording, const struct recording_stream *stream,
			  uint64_t stamp)
{
	const struct replay_cut cut = {.stamp = stamp};
	const struct recording_entry *entry;
	size_t at;

	if (replay_find(recording, stream, &cut, &at) < 0) {
		/* Nothing had happened yet, or nobody knows what. */
		entry = stream_entry(recording, stream, 0);
		return entry->kind == RECORDING_EVENTS
			       ? entry->first == 1
			       : entry->kind == RECORDING_KEYFRAME && entry->last == 0;
	}
	/* The keyframe after a gap would have been found. */
	entry = restore_after(recording, stream, at);
	return !entry || entry->kind != RECORDING_GAP ||
	       stamp < stream_entry(recording, stream, at)->stamp_last;
}

bool recording_knows(const struct recording *recording, size_t book, uint64_t time_ns)
{
	const struct recording_known *known = &recording->books[book];
	uint64_t stamp = recording_stamp(known, time_ns);

	if (time_ns < known->timebase.start)
		return true; /* it was not there */
	for (size_t i = 0; i < known->stream_count; i++) {
		if (!restore_knows(recording, &recording->streams[known->first_stream + i], stamp))
			return false;
	}
	return true;
}

void recording_limit(struct recording *recording, uint64_t room)
{
	recording->room = room;
}
