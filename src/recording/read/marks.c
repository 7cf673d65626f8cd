/* SPDX-License-Identifier: Apache-2.0 */

/* The part of a book where its marks are, as it changed over time. */

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "book/read/reader.h"
#include "model/mark.h"
#include "model/snapshot.h"
#include "recording/read/recording-private.h"

/* A file from anybody may have endlessly many. */
#define MARKS_MAX 65536u

struct marks {
	struct recording *recording;
	const struct recording_known *book;
	struct reader *reader;
	struct snapshot *snapshot;
	struct mark_list *list;
	struct book_mark now[BOOK_MARKS];
	uint64_t last; /* commit word of the last one that was seen */
};

static const char *marks_text(struct marks *marks, uint32_t id)
{
	size_t length;
	const char *bytes = reader_string(marks->reader, id, &length);

	return bytes ? snapshot_text(marks->snapshot, bytes, length) : NULL;
}

static int marks_add(struct marks *marks, const struct book_mark *mark)
{
	struct mark_list *to = marks->list;
	struct mark *list;

	if (to->count >= MARKS_MAX)
		return 0;
	list = array_grow(to->list, &to->capacity, to->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	to->list = list;
	list[to->count++] = (struct mark){
		.stamp = mark->time,
		.time_ns = timebase_ns(&marks->book->timebase, mark->time),
		.name = marks_text(marks, mark->name),
		.phase = marks_text(marks, mark->phase),
	};
	return 0;
}

/* Takes what lies over the marks. Return: whether there was something. */
static bool marks_copy(struct marks *marks, const struct recording_bytes *head,
		       const uint8_t *bytes)
{
	uint64_t from = bits_max(head->offset, BOOK_MARKS_OFFSET);
	uint64_t to = bits_min(head->offset + head->length, BOOK_MARKS_OFFSET + sizeof(marks->now));

	if (head->offset > BOOK_SIZE_MAX || from >= to)
		return false;
	memcpy((uint8_t *)marks->now + (from - BOOK_MARKS_OFFSET), bytes + (from - head->offset),
	       to - from);
	return true;
}

/* The new ones, in their own order: mark n is at n % BOOK_MARKS, and its commit word is n + 1. */
static int marks_look(struct marks *marks)
{
	uint64_t last = marks->last, first;
	int r = 0;

	for (uint32_t i = 0; i < BOOK_MARKS; i++) {
		if ((marks->now[i].commit - 1) % BOOK_MARKS == i)
			last = bits_max(last, marks->now[i].commit);
	}
	first = last > marks->last + BOOK_MARKS ? last - BOOK_MARKS : marks->last;
	for (uint64_t commit = first + 1; r == 0 && commit <= last; commit++) {
		const struct book_mark *mark = &marks->now[(commit - 1) % BOOK_MARKS];

		if (mark->commit == commit)
			r = marks_add(marks, mark);
	}
	marks->last = last;
	return r;
}

static int marks_take(struct marks *marks, const struct recording_entry *entry)
{
	const struct chunk_bytes *contents = &marks->recording->contents;
	int r = recording_read(marks->recording, entry);
	bool is_changed = false;

	for (size_t at = 0; r == 0 && at < contents->size;) {
		struct recording_bytes head;
		size_t left = contents->size - at;

		if (left < sizeof(head))
			break;
		memcpy(&head, contents->bytes + at, sizeof(head));
		if (head.length > left - sizeof(head))
			break;
		if (marks_copy(marks, &head, contents->bytes + at + sizeof(head)))
			is_changed = true;
		at += bits_min(left, sizeof(head) + bits_align_up(head.length, 8));
	}
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	return is_changed ? marks_look(marks) : 0;
}

int recording_marks(struct recording *recording, size_t book, struct reader *reader,
		    struct snapshot *snapshot, struct mark_list *list)
{
	struct marks marks = {
		.recording = recording,
		.book = &recording->books[book],
		.reader = reader,
		.snapshot = snapshot,
		.list = list,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < marks.book->count; i++) {
		const struct recording_entry *entry =
			recording_entry(recording, marks.book->chunks[i]);

		if (entry->kind == RECORDING_BYTES)
			r = marks_take(&marks, entry);
	}
	return r;
}
