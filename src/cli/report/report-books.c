/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What has to be asked of each book: marks, the names of phases, and what call sites did with buffers
 * that no snapshot shows, because they live for so short a time.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/report/report.h"
#include "model/snapshot.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define REPORT_BOOKS_MAX 1024u

struct report_temporary {
	struct report_owner owner;
	struct report_site site;
	const char *name;          /* there is none: it may have had any */
	const struct stack *stack; /* of the scratch snapshot; NULL = none */
	uint64_t lives;            /* short ones */
	struct recording_site sum; /* over the devices; high_bytes: the highest of one */
};

struct report_mark {
	struct report_owner owner;
	uint64_t time_ns;
	const char *name; /* of the scratch snapshot */
};

struct report_books {
	struct report *report;
	struct snapshot *texts; /* owned: keeps the texts */
	struct report_mark *marks;
	size_t mark_count, mark_capacity;
	struct report_temporary *temporaries;
	size_t count, capacity;
};

static void report_books_deinit(struct report_books *books)
{
	snapshot_free(books->texts);
	free(books->marks);
	free(books->temporaries);
}

static struct report_owner report_owner_of(struct report *report, uint32_t book)
{
	const struct recording_book *owner = &recording_owner(report->recording, book)->book;

	return (struct report_owner){
		.pid = owner->pid,
		.comm = must_have(pool_text(&report->stacks.pool, owner->comm,
					    strnlen(owner->comm, sizeof(owner->comm)))),
	};
}

static int report_books_marks(struct report_books *books, uint32_t number, struct scan_book *book)
{
	CLEANUP(book_marks_deinit) struct mark_list marks = MARK_LIST_NULL;
	uint64_t lost;
	int r = book_marks_read(book, books->texts, &marks, &lost);

	for (size_t i = 0; r == 0 && i < marks.count && books->mark_count < REPORT_MARKS_MAX; i++) {
		must_grow(books->marks, &books->mark_capacity, books->mark_count + 1);
		books->marks[books->mark_count++] =
			(struct report_mark){.owner = report_owner_of(books->report, number),
					     .time_ns = marks.list[i].time_ns,
					     .name = marks.list[i].name ? marks.list[i].name : ""};
	}
	return r;
}

static void report_books_phases(struct report_books *books, uint32_t number, struct scan_book *book)
{
	struct report *report = books->report;

	for (size_t i = 0; i < report->walk.span_count; i++) {
		struct report_span *span = &report->walk.spans[i];
		size_t length;
		const char *bytes;

		if (span->book != number)
			continue;
		bytes = reader_string(&book->reader, span->phase, &length);
		span->name = bytes ? snapshot_text(books->texts, bytes, length) : NULL;
		span->owner = report_owner_of(report, number);
	}
}

static int report_compare_sites(const void *left, const void *right)
{
	const struct report_temporary *a = left, *b = right;

	if (a->sum.stack != b->sum.stack)
		return bits_compare(a->sum.stack, b->sum.stack);
	return bits_compare(a->sum.type, b->sum.type);
}

/*
 * Makes one of what a call site did on several devices. @first: of this book. By sorting: a file may
 * have as many call sites as it likes.
 */
static void report_books_merge(struct report_books *books, size_t first)
{
	struct report_temporary *list = books->temporaries + first;
	size_t count = books->count - first, kept = 0;

	if (count < 2)
		return;
	qsort(list, count, sizeof(*list), report_compare_sites);
	for (size_t i = 1; i < count; i++) {
		const struct recording_site *site = &list[i].sum;
		struct recording_site *sum = &list[kept].sum;

		if (report_compare_sites(&list[kept], &list[i]) != 0) {
			list[++kept] = list[i];
			continue;
		}
		sum->allocs += site->allocs;
		sum->frees += site->frees;
		sum->alloc_bytes += site->alloc_bytes;
		sum->high_bytes = bits_max(sum->high_bytes, site->high_bytes);
		for (uint32_t k = 0; k < RECORDING_LIVES; k++)
			sum->lives[k] += site->lives[k];
	}
	books->count = first + kept + 1;
}

static int report_books_device(struct report_books *books, uint32_t number, size_t first,
			       uint32_t device)
{
	CLEANUP_FREE struct recording_site *sites = NULL;
	const struct report *report = books->report;
	size_t count = 0;
	int r = recording_sites(report->recording, number, device, &report->end_moment, &sites,
				&count);

	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (recording_short_lives(&sites[i]) == 0)
			continue;
		must_grow(books->temporaries, &books->capacity, books->count + 1);
		books->temporaries[books->count++] = (struct report_temporary){.sum = sites[i]};
	}
	report_books_merge(books, first);
	return r;
}

static int report_books_temporaries(struct report_books *books, uint32_t number,
				    struct scan_book *book)
{
	CLEANUP(stacks_cleanup) struct stacks *stacks = NULL;
	size_t first = books->count;
	int64_t device = reader_next_shard(&book->reader, 0);
	int r = stacks_new(&stacks, book, recording_namer(books->report->recording));

	while (r == 0 && device >= 0) {
		r = report_books_device(books, number, first, (uint32_t)device);
		device = reader_next_shard(&book->reader, (uint32_t)device + 1);
	}
	for (size_t i = first; r == 0 && i < books->count; i++) {
		struct report_temporary *one = &books->temporaries[i];
		one->owner = report_owner_of(books->report, number);
		one->lives = recording_short_lives(&one->sum);
		one->stack = must_stack(&books->texts->texts, stacks_get(stacks, one->sum.stack));
	}
	return r;
}

static int report_books_read(struct report_books *books, uint32_t number)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	const struct report *report = books->report;
	int r = recording_restore(report->recording, number, &report->end_moment, &book);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = report_books_marks(books, number, book);
	if (r == 0)
		r = report_books_temporaries(books, number, book);
	if (r == 0)
		report_books_phases(books, number, book);
	return r;
}

static int report_compare_temporaries(const void *left, const void *right)
{
	const struct report_temporary *a = left, *b = right;

	return bits_compare(b->lives, a->lives);
}

static const void *report_each_temporary(const void *context, size_t *at, struct fields_room *room)
{
	const struct report_books *books = context;
	struct report_temporary *row = FIELDS_IN(room, struct report_temporary);

	if (*at >= bits_min(books->count, REPORT_TEMPORARIES_MAX))
		return NULL;
	*row = books->temporaries[(*at)++];
	row->site.type = row->sum.type;
	row->site.stack = report_stacks_index(&books->report->stacks, row->stack);
	return row;
}

#define ROW struct report_owner

static const struct field report_owner[] = {
	FIELD("pid", SHORT, pid),
	FIELD("comm", TEXT, comm),
	FIELD_END,
};

#undef ROW
#define ROW struct report_temporary

static const struct field report_temporary[] = {
	FIELD_MORE_OF(site, report_site_fields),
	FIELD_OR_NULL("name", TEXT, name),
	FIELD_MORE_OF(owner, report_owner),
	FIELD("allocs", NUMBER, sum.allocs),
	FIELD("frees", NUMBER, sum.frees),
	FIELD("bytes", BYTES, sum.alloc_bytes),
	FIELD("high", BYTES, sum.high_bytes),
	FIELD_FIXED("lives", sum.lives),
	FIELD_END,
};

#undef ROW
#define ROW struct report_gap

static const struct field report_gap[] = {
	FIELD_MORE_OF(owner, report_owner),
	FIELD("device", SHORT, device),
	FIELD("from_ns", TIME, from_ns),
	FIELD("to_ns", TIME, to_ns),
	FIELD("events", NUMBER, events),
	FIELD("allocs", NUMBER, allocs),
	FIELD("frees", NUMBER, frees),
	FIELD("peak", BOOL, has_peak),
	FIELD_END,
};

#undef ROW
#define ROW struct report_mark

static const struct field report_mark[] = {
	FIELD_MORE_OF(owner, report_owner),
	FIELD("time_ns", TIME, time_ns),
	FIELD("name", TEXT, name),
	FIELD_END,
};

#undef ROW
#define ROW struct report_span

static const struct field report_span[] = {
	FIELD_MORE_OF(owner, report_owner),
	FIELD("phase", TEXT, name),
	FIELD("from_ns", TIME, from_ns),
	FIELD("to_ns", TIME, to_ns),
	FIELD_END,
};

#undef ROW
#define ROW struct report_books

static const struct field report_temporaries[] = {
	FIELD("site_count", NUMBER, count),
	FIELD_MADE("sites", report_each_temporary, report_temporary),
	FIELD_END,
};

static void report_put_named(struct report *report, const struct report_books *books)
{
	struct report_walk *walk = &report->walk;
	struct emit *json = &report->json;

	emit_open_array(json, "gaps");
	for (size_t i = 0; i < walk->gap_count; i++) {
		walk->gaps[i].owner = report_owner_of(report, walk->gaps[i].book);
		fields_put_row(json, report_gap, &walk->gaps[i]);
	}
	emit_close_array(json);
	emit_open_array(json, "marks");
	for (size_t i = 0; i < books->mark_count; i++)
		fields_put_row(json, report_mark, &books->marks[i]);
	emit_close_array(json);
	emit_open_array(json, "phases");
	for (size_t i = 0; i < walk->span_count; i++) {
		if (walk->spans[i].name)
			fields_put_row(json, report_span, &walk->spans[i]);
	}
	emit_close_array(json);
}

int report_put_books(struct report *report)
{
	CLEANUP(report_books_deinit) struct report_books books = {.report = report};
	int r = 0;

	books.texts = must_have(snapshot_new(report->facts->end_ns));
	for (uint32_t i = 0; r == 0 && i < bits_min(report->facts->books, REPORT_BOOKS_MAX); i++)
		r = report_books_read(&books, i);
	if (r < 0)
		return r;
	if (books.count > 0)
		qsort(books.temporaries, books.count, sizeof(*books.temporaries),
		      report_compare_temporaries);
	report_put_named(report, &books);
	fields_put_object(&report->json, "temporaries", report_temporaries, &books);
	return 0;
}
