/* SPDX-License-Identifier: Apache-2.0 */

/* The stacks of a book. */

#include "source/books/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/pool.h"
#include "model/sites/namer.h"
#include "model/snapshot-request.h"
#include "source/books/book-private.h"
#include "source/books/scan.h"

#define STACKS_FRAMES 64u
#define STACKS_ASKED_MAX 4096u /* then texts are discarded: a book may have endlessly many stacks */
#define STACKS_SEGMENT (BOOK_ARENA_UNITS * BOOK_UNIT / (uint32_t)sizeof(struct book_stack))

struct stacks {
	struct book_reading reading;
	struct snapshot_request request;
	uint32_t asked;
};

int stacks_new(struct stacks **ret_stacks, struct scan_book *book, struct namer *namer)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	stacks->request.namer = namer;
	stacks->reading.book = book;
	stacks->reading.request = &stacks->request;
	*ret_stacks = stacks;
	return 0;
}

struct stacks *stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return NULL;
	book_reading_deinit(&stacks->reading);
	snapshot_free(stacks->reading.snapshot);
	free(stacks);
	return NULL;
}

const struct stack *stacks_get(struct stacks *stacks, uint32_t id)
{
	struct book_reading *reading = &stacks->reading;

	if (id == 0)
		return NULL;
	if (stacks->asked++ % STACKS_ASKED_MAX == 0) {
		snapshot_free(reading->snapshot);
		reading->snapshot = snapshot_new(0);
		book_reading_deinit(reading);
	}
	return reading->snapshot ? book_stack(reading, id) : NULL;
}

static void stacks_ask(struct scan_book *book, struct namer *namer, struct pool *texts,
		       const struct book_frame *frame)
{
	struct namer_name names[NAMER_NAMES_MAX];
	struct namer_place place;
	struct book_module module;
	const char *path;
	size_t length;

	if (reader_module(&book->reader, frame->module, &module) < 0)
		return;
	path = reader_string(&book->reader, module.path, &length);
	if (path)
		path = pool_text(texts, path, length);
	if (book_place(book, frame, &module, path, &place))
		(void)namer->find(namer, &place, names, NAMER_NAMES_MAX); /* only fills its cache */
}

int stacks_tour(struct scan_book *book, struct namer *namer, struct pool *texts, uint32_t max,
		uint32_t *next)
{
	struct book_frame frames[STACKS_FRAMES];
	struct book_arena arena;
	struct book_stack head = {0};
	uint32_t id = *next ? *next : 1, seen = 0;
	int r = reader_arena(&book->reader, BOOK_ARENA_STACKS, &arena);

	if (r < 0)
		return r;
	while (seen < max && id < arena.used / sizeof(head)) {
		size_t count = reader_stack(&book->reader, id, &head, frames, STACKS_FRAMES);

		for (size_t i = 0; i < bits_min(count, head.native); i++)
			stacks_ask(book, namer, texts, &frames[i]);
		/*
		 * The end of a segment may be empty. Whatever a book contains, this makes progress.
		 */
		id = count ? id + 1 + head.native + head.python
			   : (uint32_t)bits_align_up(id + 1, STACKS_SEGMENT);
		seen++;
	}
	*next = id;
	return (int)seen;
}
