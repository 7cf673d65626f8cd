/* SPDX-License-Identifier: Apache-2.0 */

/* The source of books: who owns them, and what the scan had to leave out. book-read.c reads one. */

#include "source/books/book-source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/book-clock.h"
#include "book/read/view.h"
#include "model/page-cursor.h"
#include "model/snapshot.h"
#include "model/timebase.h"
#include "model/types.h"
#include "source/books/scan.h"
#include "source/collect.h"
#include "source/daemon-client/daemon-client.h"
#include "source/host/kernel.h"
#include "source/source.h"

struct book_origin {
	struct source source;
	struct scan *scan;
	struct daemon_client *remote;
	uint64_t pace_ns;   /* see book_source_pace() */
	uint64_t search_ns; /* CLOCK_MONOTONIC: no search before this */
	struct view view;   /* used for one book after the other, so that its memory is reused */
};

void book_now(const struct scan_book *book, struct timebase_now *ret_now)
{
	const struct book_header *header = &book->reader.header;

	if (book->recorded) {
		*ret_now = book->recorded->moment;
		return;
	}
	*ret_now = (struct timebase_now){
		.stamp = book_clock_read(header->clock),
		.monotonic = proc_monotonic_ns(),
		.realtime = clock_ns(CLOCK_REALTIME),
	};
	/* The other clocks are the same in all time namespaces. */
	if (header->clock == BOOK_CLOCK_MONOTONIC)
		ret_now->stamp = ret_now->monotonic + (uint64_t)header->monotonic_offset;
}

void book_timebase(const struct scan_book *book, struct timebase *ret_timebase)
{
	struct timebase_now now;

	book_now(book, &now);
	timebase_init(ret_timebase, &book->reader.header, &now);
}

uint32_t book_maker(const struct scan_book *book)
{
	return book->reader.header.source == BOOK_SOURCE_SOCKET && book->uid == geteuid()
		       ? book->owner.real_uid
		       : book->uid;
}

int book_add_process(const struct scan_book *book, struct snapshot *snapshot, uint32_t *ret_index)
{
	const struct book_header *header = &book->reader.header;
	const struct proc_facts *owner = &book->owner;
	const char *source = types_source_name(header->source);
	struct snapshot_process process = {
		.id = owner->id,
		.ns_pid = owner->ns_pid,
		.start_ns = book->recorded ? book->recorded->start_ns
					   : proc_started_ns(owner->id.start_ticks),
		.comm = snapshot_text(snapshot, owner->comm,
				      strnlen(owner->comm, sizeof(owner->comm))),
		.user_id = owner->real_uid,
		.maker_id = book->uid,
		.source = source ? source : "book",
		.alive = book->alive,
		.exact = true,
		.rejected = header->rejected,
	};
	struct timebase timebase;
	char user[64];

	book_timebase(book, &timebase);
	process.last_ns = timebase.start; /* creating a book counts as activity */
	if (book->recorded)
		(void)snprintf(user, sizeof(user), "%s", book->recorded->user);
	else
		proc_user_name(owner->real_uid, user, sizeof(user));
	process.user = snapshot_text(snapshot, user, strlen(user));
	if (*book->container)
		process.container =
			snapshot_text(snapshot, book->container, strlen(book->container));
	if (!process.comm || !process.user)
		return -ENOMEM;
	return snapshot_add_process(snapshot, &process, ret_index);
}

void book_note_scan(const struct scan *scan, struct snapshot *snapshot)
{
	size_t shown = bits_min(scan->refused_count, SCAN_REFUSED_MAX);

	for (size_t i = 0; i < shown; i++)
		snapshot_note(snapshot, "pid %" PRIu32 ": book refused: %s", scan->refused[i].pid,
			      scan->refused[i].reason);
	if (scan->refused_count > shown)
		snapshot_note(snapshot, "%zu more books refused", scan->refused_count - shown);
}

void book_note_nothing(const struct scan *scan, size_t others, struct snapshot *snapshot)
{
	if (scan->count > 0 || others > 0)
		return;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (strcmp(snapshot->processes[i].source, "kernel") == 0)
			return;
	}
	if (snapshot->claim_count > 0) {
		snapshot_note(snapshot,
			      "no process keeps a book (TTMEM=1); what is shown is told by "
			      "the driver and tt-metal's regions");
		return;
	}
	/* Nothing to show: then it helps to know what could not be read. */
	snapshot_note(snapshot, "no tracked process found; is TTMEM=1 set where it starts?");
	if (scan->unreadable)
		snapshot_note(snapshot,
			      "%" PRIu32
			      " of your processes may not be looked into (first: pid %" PRIu32 ")",
			      scan->unreadable, scan->unreadable_pid);
	if (scan->others)
		snapshot_note(snapshot, "%" PRIu32 " process%s of other users not looked at",
			      scan->others, scan->others == 1 ? "" : "es");
}

void book_source_pace(struct source *source, uint64_t ns)
{
	container_of(source, struct book_origin, source)->pace_ns = ns;
}

int book_source_refresh(struct source *source)
{
	struct book_origin *self = container_of(source, struct book_origin, source);
	int r = scan_run(self->scan);

	if (r == 0)
		r = kernel_attach_books(self->scan);
	if (r < 0)
		return r;
	r = daemon_client_refresh(self->remote, self->scan);
	return r > 0 ? 0 : r; /* daemon_client_collect() notes a daemon that does not answer */
}

static int book_compare(const void *left, const void *right)
{
	const struct scan_book *const *a = left, *const *b = right;
	struct page_cursor place = {.pid = (*a)->owner.id.pid, .inode = (*a)->id.inode};

	return page_cursor_compare_book(&place, (*b)->owner.id.pid, (*b)->id.inode);
}

static int book_search(struct book_origin *self)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (now < self->search_ns)
		return 0;
	r = book_source_refresh(&self->source);
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	if (self->pace_ns)
		self->search_ns = now + bits_max(self->pace_ns, used * BOOK_SEARCH_SHARE);
	return r;
}

/* Whether the scan or the daemon knows a book. */
static bool book_knows(const void *context, const struct kernel_holder *book)
{
	const struct book_origin *self = context;

	return scan_has(self->scan, book->book) || daemon_client_has(self->remote, book->book);
}

static int book_source_collect(struct source *source, const struct snapshot_request *request,
			       struct snapshot *snapshot)
{
	struct book_origin *self = container_of(source, struct book_origin, source);
	struct snapshot_request of_dead = *request;
	int r = book_search(self);

	/* What an exited process left are not live buffers: shown only on request. */
	of_dead.buffers = request->buffers && (request->filter.pid || request->ended);
	of_dead.closed = request->closed && of_dead.buffers;
	if (r == 0 && request->limit && self->scan->count > 0) /* pages need an order */
		qsort(self->scan->books, self->scan->count, sizeof(struct scan_book *),
		      book_compare);
	for (size_t i = 0; r == 0 && i < self->scan->count; i++) {
		struct scan_book *book = self->scan->books[i];

		if (!book->gone)
			r = book_collect(book, book->alive ? request : &of_dead, &self->view,
					 snapshot);
	}
	if (r == 0)
		r = daemon_client_collect(self->remote, request, snapshot);
	if (r == 0)
		book_note_scan(self->scan, snapshot);
	return r;
}

void book_source_sources(struct source *source, struct collect_sources *ret_sources)
{
	struct book_origin *self = container_of(source, struct book_origin, source);

	*ret_sources = (struct collect_sources){
		.books = source,
		.knows = book_knows,
		.known = self,
		.proc = &self->scan->proc,
		.remote = self->remote,
		.notes_overlaps = true,
		.scan = self->scan,
	};
}

static void book_source_free(struct source *source)
{
	struct book_origin *self = container_of(source, struct book_origin, source);

	scan_free(self->scan);
	daemon_client_free(self->remote);
	view_deinit(&self->view);
	free(self);
}

static const struct source_ops book_source_ops = {
	.name = "book",
	.collect = book_source_collect,
	.free = book_source_free,
};

int book_source_new(struct source **ret_source)
{
	CLEANUP_FREE struct book_origin *self = calloc(1, sizeof(*self));
	int r;

	if (!self)
		return -ENOMEM;
	self->source.ops = &book_source_ops;
	r = scan_new(&self->scan);
	if (r < 0)
		return r;
	r = daemon_client_new(&self->remote);
	if (r < 0) {
		scan_free(self->scan);
		return r;
	}
	*ret_source = &cleanup_steal(self)->source;
	return 0;
}

struct scan *book_source_scan(struct source *source)
{
	return container_of(source, struct book_origin, source)->scan;
}

struct daemon_client *book_source_remote(struct source *source)
{
	return container_of(source, struct book_origin, source)->remote;
}
