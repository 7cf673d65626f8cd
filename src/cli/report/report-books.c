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
#include "cli/common/session.h"
#include "cli/report/report.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define REPORT_BOOKS_MAX 1024u

/* Bit length of ns / 1024: about a millisecond. */
#define REPORT_SHORT_LIFE 10u

struct report_temporary {
	uint32_t book;
	const struct stack *stack; /* of the scratch snapshot; NULL = none */
	uint64_t lives;            /* short ones */
	struct recording_site sum; /* over the devices; high_bytes: the highest of one */
};

struct report_mark {
	uint32_t book;
	uint64_t time_ns;
	const char *name; /* of the scratch snapshot */
};

struct report_books {
	struct report *report;
	struct snapshot *texts; /* owned: keeps the texts */
	const char **phases;    /* owned; of each span of the walk */
	struct report_mark *marks;
	size_t mark_count, mark_capacity;
	struct report_temporary *temporaries;
	size_t count, capacity;
};

static void report_books_deinit(struct report_books *books)
{
	snapshot_free(books->texts);
	free(books->phases);
	free(books->marks);
	free(books->temporaries);
}

static int report_books_marks(struct report_books *books, uint32_t number, struct scan_book *book)
{
	CLEANUP(book_marks_deinit) struct mark_list marks = MARK_LIST_NULL;
	uint64_t lost;
	int r = book_marks_read(book, books->texts, &marks, &lost);

	for (size_t i = 0; r == 0 && i < marks.count && books->mark_count < REPORT_MARKS_MAX; i++) {
		must_grow(books->marks, &books->mark_capacity, books->mark_count + 1);
		books->marks[books->mark_count++] =
			(struct report_mark){.book = number,
					     .time_ns = marks.list[i].time_ns,
					     .name = marks.list[i].name};
	}
	return r;
}

static void report_books_phases(struct report_books *books, uint32_t number, struct scan_book *book)
{
	for (size_t i = 0; i < books->report->walk.span_count; i++) {
		const struct report_span *span = &books->report->walk.spans[i];
		size_t length;
		const char *bytes;

		if (span->book != number)
			continue;
		bytes = reader_string(&book->reader, span->phase, &length);
		books->phases[i] = bytes ? snapshot_text(books->texts, bytes, length) : NULL;
	}
}

static uint64_t report_short_lives(const struct recording_site *site)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i <= REPORT_SHORT_LIFE; i++)
		sum += site->lives[i];
	return sum;
}

static void report_books_add(struct report_books *books, uint32_t number,
			     const struct recording_site *site)
{
	must_grow(books->temporaries, &books->capacity, books->count + 1);
	books->temporaries[books->count++] =
		(struct report_temporary){.book = number, .sum = *site};
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
		if (report_short_lives(&sites[i]) > 0)
			report_books_add(books, number, &sites[i]);
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
		one->lives = report_short_lives(&one->sum);
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

static void report_put_owner(struct report *report, uint32_t book)
{
	const struct recording_owner *owner = recording_owner(report->recording, book);
	char comm[sizeof(owner->book.comm) + 1] = "";

	emit_u64(&report->json, "pid", owner ? owner->book.pid : 0);
	if (owner)
		memcpy(comm, owner->book.comm, sizeof(owner->book.comm));
	emit_string(&report->json, "comm", comm);
}

static void report_put_temporary(struct report *report, const struct report_temporary *one)
{
	const struct report_site site = {.type = one->sum.type, .stack = one->stack};
	struct emit *json = &report->json;

	emit_open_object(json, NULL);
	report_put_site(report, &site);
	emit_null(json, "name");
	report_put_owner(report, one->book);
	emit_u64(json, "allocs", one->sum.allocs);
	emit_u64(json, "frees", one->sum.frees);
	emit_u64(json, "bytes", one->sum.alloc_bytes);
	emit_u64(json, "high", one->sum.high_bytes);
	emit_open_array(json, "lives");
	for (uint32_t i = 0; i < RECORDING_LIVES; i++)
		emit_u64(json, NULL, one->sum.lives[i]);
	emit_close_array(json);
	emit_close_object(json);
}

static void report_put_temporaries(struct report *report, const struct report_books *books)
{
	emit_open_object(&report->json, "temporaries");
	emit_u64(&report->json, "site_count", books->count);
	emit_open_array(&report->json, "sites");
	for (size_t i = 0; i < bits_min(books->count, REPORT_TEMPORARIES_MAX); i++)
		report_put_temporary(report, &books->temporaries[i]);
	emit_close_array(&report->json);
	emit_close_object(&report->json);
}

static void report_put_gaps(struct report *report, const struct report_walk *walk)
{
	struct emit *json = &report->json;

	emit_open_array(json, "gaps");
	for (size_t i = 0; i < walk->gap_count; i++) {
		const struct report_gap *gap = &walk->gaps[i];

		emit_open_object(json, NULL);
		report_put_owner(report, gap->book);
		emit_u64(json, "device", gap->device);
		emit_u64(json, "from_ns", gap->from_ns);
		emit_u64(json, "to_ns", gap->to_ns);
		emit_u64(json, "events", gap->events);
		emit_u64(json, "allocs", gap->allocs);
		emit_u64(json, "frees", gap->frees);
		emit_bool(json, "peak", gap->has_peak);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void report_put_named(struct report *report, const struct report_books *books)
{
	struct emit *json = &report->json;

	emit_open_array(json, "marks");
	for (size_t i = 0; i < books->mark_count; i++) {
		emit_open_object(json, NULL);
		report_put_owner(report, books->marks[i].book);
		emit_u64(json, "time_ns", books->marks[i].time_ns);
		emit_string(json, "name", books->marks[i].name ? books->marks[i].name : "");
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_open_array(json, "phases");
	for (size_t i = 0; i < books->report->walk.span_count; i++) {
		const struct report_span *span = &books->report->walk.spans[i];

		if (!books->phases[i])
			continue;
		emit_open_object(json, NULL);
		report_put_owner(report, span->book);
		emit_string(json, "phase", books->phases[i]);
		emit_u64(json, "from_ns", span->from_ns);
		emit_u64(json, "to_ns", span->to_ns);
		emit_close_object(json);
	}
	emit_close_array(json);
}

int report_put_books(struct report *report)
{
	CLEANUP(report_books_deinit) struct report_books books = {.report = report};
	int r = 0;

	books.texts = must_have(snapshot_new(report->facts->end_ns));
	books.phases = must_alloc(report->walk.span_count + 1, sizeof(*books.phases));
	for (uint32_t i = 0; r == 0 && i < bits_min(report->facts->books, REPORT_BOOKS_MAX); i++)
		r = report_books_read(&books, i);
	if (r < 0)
		return r;
	if (books.count > 0)
		qsort(books.temporaries, books.count, sizeof(*books.temporaries),
		      report_compare_temporaries);
	report_put_gaps(report, &report->walk);
	report_put_named(report, &books);
	report_put_temporaries(report, &books);
	return 0;
}
