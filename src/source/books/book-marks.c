/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the marks of a book; those that its owner overwrites meanwhile are left out. */

#include "source/books/book-marks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "model/snapshot.h"
#include "model/timebase.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

void book_marks_deinit(struct mark_list *marks)
{
	free(marks->list);
	*marks = MARK_LIST_NULL;
}

static const char *book_marks_text(struct scan_book *book, struct snapshot *snapshot, uint32_t id)
{
	size_t length;
	const char *bytes = reader_string(&book->reader, id, &length);

	return bytes ? snapshot_text(snapshot, bytes, length) : NULL;
}

static int book_marks_add(struct mark_list *marks, const struct mark *mark)
{
	struct mark *list =
		array_grow(marks->list, &marks->capacity, marks->count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	marks->list = list;
	list[marks->count++] = *mark;
	return 0;
}

int book_marks_read(struct scan_book *book, struct snapshot *snapshot, struct mark_list *marks,
		    uint64_t *ret_lost)
{
	struct timebase timebase;
	uint64_t count, first;
	int r = reader_refresh(&book->reader);

	if (r < 0)
		return r;
	book_timebase(book, &timebase);
	count = book->reader.header.mark_count;
	first = count > BOOK_MARKS ? count - BOOK_MARKS : 0;
	*ret_lost = first;
	for (uint64_t i = first; r == 0 && i < count; i++) {
		struct book_mark mark;

		r = reader_mark(&book->reader, i, &mark);
		if (r == -ENOENT) {
			++*ret_lost;
			r = 0;
			continue;
		}
		if (r == 0)
			r = book_marks_add(
				marks, &(struct mark){
					       .stamp = mark.time,
					       .time_ns = timebase_ns(&timebase, mark.time),
					       .name = book_marks_text(book, snapshot, mark.name),
					       .phase = book_marks_text(book, snapshot, mark.phase),
				       });
	}
	return r;
}
