/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of a book only become more, so the book at the end has those of all events. It is made
 * when its first event comes.
 */

#include "cli/export/export-feed-books.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "book/read/view.h"
#include "cli/common/must.h"
#include "model/filter.h"
#include "model/sites/stack.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

void feed_books_init(struct feed_books *books, struct recording *recording,
		     const struct recording_moment *until)
{
	*books = (struct feed_books){.recording = recording,
				     .until = *until,
				     .count = recording_facts(recording)->books};
	books->list = must_alloc(books->count + 1, sizeof(*books->list));
}

static void feed_texts_deinit(struct feed_texts *texts)
{
	map_deinit(&texts->index);
	free(texts->list);
}

void feed_books_deinit(struct feed_books *books)
{
	for (size_t i = 0; i < books->count; i++) {
		stacks_free(books->list[i].stacks);
		scan_book_free(books->list[i].book);
		feed_texts_deinit(&books->list[i].strings);
		feed_texts_deinit(&books->list[i].calls);
	}
	free(books->list);
	pool_deinit(&books->pool);
	*books = (struct feed_books){.list = NULL};
}

struct feed_book *feed_books_get(struct feed_books *books, size_t number)
{
	struct feed_book *book = &books->list[number];

	if (!book->is_tried) {
		book->is_tried = true;
		if (recording_restore(books->recording, number, &books->until, &book->book) < 0)
			book->book = NULL;
		else if (stacks_new(&book->stacks, book->book, recording_namer(books->recording)) <
			 0)
			book->stacks = NULL; /* then there are none */
	}
	return book->book ? book : NULL;
}

const char *feed_books_text(struct feed_books *books, const char *text)
{
	return text ? must_have(pool_long_text(&books->pool, text, strlen(text))) : NULL;
}

/* The place for the text or stack of @id; @ret_is_new: it is not there yet. */
static const void **feed_texts_place(struct feed_texts *texts, uint32_t id, bool *ret_is_new)
{
	uint32_t before = texts->index.count, number = must_number(&texts->index, id, 0);

	must_grow(texts->list, &texts->capacity, number);
	*ret_is_new = number > before;
	return &texts->list[number - 1];
}

const char *feed_books_string(struct feed_books *books, size_t number, uint32_t id)
{
	struct feed_book *book = id ? feed_books_get(books, number) : NULL;
	const void **text;
	const char *bytes;
	size_t length;
	bool is_new;

	if (!book)
		return NULL;
	text = feed_texts_place(&book->strings, id, &is_new);
	if (is_new) {
		bytes = reader_string(&book->book->reader, id, &length);
		*text = bytes ? must_have(pool_text(&books->pool, bytes, length)) : NULL;
	}
	return *text;
}

const struct stack *feed_books_stack(struct feed_books *books, size_t number, uint32_t id)
{
	struct feed_book *book = id ? feed_books_get(books, number) : NULL;
	const void **stack;
	bool is_new;

	if (!book || !book->stacks)
		return NULL;
	stack = feed_texts_place(&book->calls, id, &is_new);
	if (is_new)
		*stack = must_stack(&books->pool, stacks_get(book->stacks, id));
	return *stack;
}

bool feed_books_wants(struct feed_books *books, size_t number, uint32_t device,
		      const struct filter *filter)
{
	struct feed_book *book = feed_books_get(books, number);
	struct book_device facts = {0};

	if (!filter_wants_pid(filter, recording_owner(books->recording, number)->book.pid))
		return false;
	/* One that was never declared has no unique id. */
	if (book)
		(void)reader_device(&book->book->reader, device, &facts);
	return filter_wants_device(filter, device, facts.unique_id);
}

static uint64_t feed_last(struct scan_book *book, uint32_t device)
{
	CLEANUP(view_deinit) struct view view = VIEW_NULL;

	return view_read(&view, &book->reader, device, VIEW_DEAD) == 0 ? view.number : 0;
}

static int feed_collect(struct recording *recording, struct scan_book *book, uint32_t device,
			struct snapshot *snapshot)
{
	const struct snapshot_request request = {
		.buffers = true,
		.ended = true,
		.filter = {.device_count = 1, .devices = {{.value = device}}},
		.namer = recording_namer(recording),
	};
	CLEANUP(view_deinit) struct view view = VIEW_NULL;

	return book_collect(book, &request, &view, snapshot);
}

int feed_books_live(struct feed_books *books, size_t number, uint32_t device,
		    const struct recording_moment *moment, struct snapshot **ret_snapshot,
		    uint64_t *ret_last)
{
	struct snapshot *snapshot;
	struct scan_book *book;
	int r = recording_restore(books->recording, number, moment, &book);

	if (r < 0)
		return r;
	snapshot = must_have(snapshot_new(moment->time_ns));
	r = feed_collect(books->recording, book, device, snapshot);
	*ret_last = feed_last(book, device);
	scan_book_free(book);
	if (r < 0)
		snapshot_free(snapshot);
	else
		*ret_snapshot = snapshot;
	return r;
}

uint64_t feed_books_last(struct feed_books *books, size_t number, uint32_t device)
{
	struct feed_book *book = feed_books_get(books, number);

	return book ? feed_last(book->book, device) : 0;
}
