/* SPDX-License-Identifier: Apache-2.0 */

/* What stacks had allocated up to the end of a feed, from the recording's own sums. */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/export/export-feed-books.h"
#include "cli/export/export-recording.h"
#include "cli/export/format/export-form.h"
#include "model/filter.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "source/books/scan.h"

/* The process of a book; false if it is not in the snapshot. */
static bool counts_find_process(const struct snapshot *snapshot, const struct recording_book *owner,
				uint32_t *ret_process)
{
	const struct snapshot_process *process =
		snapshot_find_process(snapshot, recording_process(owner));

	if (process)
		*ret_process = (uint32_t)(process - snapshot->processes);
	return process;
}

static void counts_add(struct export_counts *counts, const struct export_count *count)
{
	must_grow(counts->list, &counts->capacity, counts->count + 1);
	counts->list[counts->count++] = *count;
}

static int counts_add_device(struct export_counts *counts, struct feed_books *books, size_t number,
			     struct export_count *count)
{
	CLEANUP_FREE struct recording_site *sites = NULL;
	size_t site_count;
	int r = recording_sites(books->recording, number, count->device, &books->until, &sites,
				&site_count);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG ? 0 : r;
	for (size_t i = 0; i < site_count; i++) {
		const struct stack *stack = feed_books_stack(books, number, sites[i].stack);

		if (sites[i].type >= BOOK_TYPES ||
		    !filter_wants_type(counts->filter, sites[i].type))
			continue;
		count->type = sites[i].type;
		count->stack = must_stack(&counts->snapshot->texts, stack);
		count->allocs = sites[i].allocs;
		count->bytes = sites[i].alloc_bytes;
		counts_add(counts, count);
	}
	return 0;
}

int export_counts_find(struct export_counts *counts, struct feed_books *books)
{
	int r = 0;

	/* A list that is not NULL, though it may be empty, says that they are known. */
	must_grow(counts->list, &counts->capacity, 1);
	for (size_t i = 0; r == 0 && i < books->count; i++) {
		struct feed_book *book = feed_books_get(books, i);
		struct export_count count = {.allocs = 0};
		int64_t device = book ? reader_next_shard(&book->book->reader, 0) : -1;

		if (!counts_find_process(counts->snapshot,
					 &recording_owner(books->recording, i)->book,
					 &count.process))
			continue;
		while (r == 0 && device >= 0) {
			count.device = (uint32_t)device;
			if (feed_books_wants(books, i, count.device, counts->filter))
				r = counts_add_device(counts, books, i, &count);
			device = reader_next_shard(&book->book->reader, count.device + 1);
		}
	}
	return r;
}
