/* SPDX-License-Identifier: Apache-2.0 */

/* The graveyard of a shard: its last frees. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "source/books/book-private.h"

#define BOOK_GRAVE_UNITS (BOOK_GRAVES * (uint32_t)sizeof(struct book_grave) / BOOK_UNIT)

/* Grave n lies at n % BOOK_GRAVES. */
static int book_graves_copy(struct reader *reader, uint64_t offset, uint64_t from, uint64_t to,
			    struct book_grave *ret_graves)
{
	while (from < to) {
		uint64_t at = from % BOOK_GRAVES;
		uint64_t run = to - from < BOOK_GRAVES - at ? to - from : BOOK_GRAVES - at;
		int r = file_read(reader->file, offset + at * sizeof(*ret_graves), ret_graves,
				  run * sizeof(*ret_graves));

		if (r < 0)
			return r;
		ret_graves += run;
		from += run;
	}
	return 0;
}

int book_graves_read(struct reader *reader, const struct book_shard *page, uint32_t device,
		     struct book_graves *graves)
{
	uint64_t from, after = 0, count = page->graves;
	int r;

	graves->first = graves->count = 0;
	if (count == 0 || !reader_segment_is(reader, page->graves_unit, BOOK_GRAVE_UNITS, device,
					     BOOK_SEGMENT_GRAVES))
		return 0;
	if (!graves->list)
		graves->list = calloc(BOOK_GRAVES, sizeof(*graves->list));
	if (!graves->list)
		return -ENOMEM;
	from = count > BOOK_GRAVES ? count - BOOK_GRAVES : 0;
	r = book_graves_copy(reader, book_unit_offset(page->graves_unit), from, count,
			     graves->list);
	if (r == 0)
		r = file_read(reader->file,
			      book_shard_offset(device) + offsetof(struct book_shard, graves),
			      &after, sizeof(after));
	if (r < 0)
		return r;
	graves->count = count - from;
	/* Grave @after may be half written, in the place of one of those that were copied. */
	if (after >= from + BOOK_GRAVES)
		graves->first = after - from - BOOK_GRAVES + 1;
	if (graves->first > graves->count || after < count)
		graves->first = graves->count;
	return 0;
}

void book_graves_deinit(struct book_graves *graves)
{
	free(graves->list);
	*graves = (struct book_graves){0};
}
