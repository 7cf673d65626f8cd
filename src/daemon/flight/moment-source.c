/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books are restored when the source is made, so that it can be read again and again. They keep the
 * numbers of the files that they were, which pages are continued by.
 */

#include "daemon/flight/moment-source.h"
#include "base/book-id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/read/view.h"
#include "daemon/flight/black-box.h"
#include "daemon/registry/access.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/collect.h"
#include "source/source.h"

struct moment_book {
	struct scan_book *book; /* owned; NULL = not known */
	struct recording_owner owner;
	uint32_t maker;
	char namespaces[NAMESPACES_SIZE];
	struct book_id id;
};

struct moment_source {
	struct source source;
	uint64_t time_ns;
	struct moment_book *books;
	size_t count, capacity;
	size_t unknown;
	uint64_t size;
	struct view view;
};

static struct moment_source *moment_source(struct source *source)
{
	return container_of(source, struct moment_source, source);
}

/* A process of which nothing but its name is known. */
static int moment_source_name(const struct moment_book *one, struct snapshot *snapshot,
			      uint32_t *ret_index)
{
	const struct recording_book *book = &one->owner.book;
	char comm[sizeof(book->comm) + 1] = "", user[sizeof(book->user) + 1] = "";
	struct snapshot_process process = {
		.id = recording_process(book),
		.ns_pid = book->ns_pid,
		.start_ns = book->start_ns,
		.user_id = book->user_id,
		.maker_id = book->maker_id,
		.source = "book",
		.alive = true,
		.exact = false,
	};

	memcpy(comm, book->comm, sizeof(book->comm));
	memcpy(user, book->user, sizeof(book->user));
	process.comm = snapshot_text(snapshot, comm, strlen(comm));
	process.user = snapshot_text(snapshot, user, strlen(user));
	if (!process.comm || !process.user)
		return -ENOMEM;
	snapshot->exact = false;
	return snapshot_add_process(snapshot, &process, ret_index);
}

static int moment_source_collect_one(struct moment_source *self, struct moment_book *one,
				     const struct snapshot_request *request,
				     struct snapshot *snapshot)
{
	const char *namespaces;
	size_t before = snapshot->process_count;
	uint32_t index;
	int r;

	if (request->buffers && request->asker &&
	    !access_may_see(request->asker->peer, one->maker, one->namespaces))
		return 0;
	namespaces = snapshot_text(snapshot, one->namespaces, strlen(one->namespaces));
	if (!namespaces)
		return -ENOMEM;
	r = one->book ? book_collect(one->book, request, &self->view, snapshot)
		      : moment_source_name(one, snapshot, &index);
	for (size_t i = before; r == 0 && i < snapshot->process_count; i++) {
		snapshot->processes[i].maker_id = one->maker;
		snapshot->processes[i].namespaces = namespaces;
	}
	return r;
}

static int moment_source_collect(struct source *source, const struct snapshot_request *request,
				 struct snapshot *snapshot)
{
	struct moment_source *self = moment_source(source);
	int r = 0;

	for (size_t i = 0; r == 0 && i < self->count; i++)
		r = moment_source_collect_one(self, &self->books[i], request, snapshot);
	if (r == 0 && self->unknown)
		snapshot_note(snapshot,
			      "of %zu processes it is not known what they had: the flight recorder "
			      "could not keep all of their events",
			      self->unknown);
	return r;
}

static void moment_source_free(struct source *source)
{
	struct moment_source *self = moment_source(source);

	for (size_t i = 0; i < self->count; i++)
		scan_book_free(self->books[i].book);
	free(self->books);
	view_deinit(&self->view);
	free(self);
}

static const struct source_ops moment_source_ops = {
	.name = "moment",
	.collect = moment_source_collect,
	.free = moment_source_free,
};

/* NULL and 0: it is not known what the book was. */
static int moment_source_restore(struct moment_source *self, struct recording *recording,
				 size_t number, struct scan_book **ret_book)
{
	const struct recording_moment moment = {
		.time_ns = self->time_ns, .book = RECORDING_NONE, .device = RECORDING_NONE};
	struct scan_book *book = NULL;
	struct stat st;
	int r;

	if (!recording_knows(recording, number, self->time_ns))
		return 0;
	r = recording_restore(recording, number, &moment, &book);
	if (r == -EBADMSG || r == -EFBIG || r == -EMFILE)
		return 0;
	if (r < 0)
		return r;
	if (fstat(book->file.fd, &st) < 0 ||
	    self->size + (uint64_t)st.st_blocks * 512 > MOMENT_SOURCE_ROOM) {
		scan_book_free(book);
		return 0;
	}
	self->size += (uint64_t)st.st_blocks * 512;
	book->alive = true;
	*ret_book = book;
	return 0;
}

static int moment_source_add(struct moment_source *self, struct recording *recording,
			     const struct black_box_owner *owner, size_t number)
{
	const struct recording_owner *was = recording_owner(recording, number);
	struct moment_book *one;
	int r;

	if (was->has_ended && was->ending.ended_ns <= self->time_ns)
		return 0;
	one = array_grow(self->books, &self->capacity, self->count + 1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	self->books = one;
	one += self->count;
	*one = (struct moment_book){.owner = *was, .maker = owner->maker, .id = owner->book};
	memcpy(one->namespaces, owner->namespaces, sizeof(one->namespaces));
	r = moment_source_restore(self, recording, number, &one->book);
	if (r == -ENOENT)
		return 0; /* it began later */
	if (r < 0)
		return r;
	if (one->book)
		one->book->id = owner->book;
	self->unknown += !one->book;
	self->count++;
	return 0;
}

/* As pages have them. */
static int moment_source_compare(const void *left, const void *right)
{
	const struct moment_book *a = left, *b = right;

	if (a->owner.book.pid != b->owner.book.pid)
		return bits_compare(a->owner.book.pid, b->owner.book.pid);
	return bits_compare(a->id.inode, b->id.inode);
}

int moment_source_new(struct source **ret_source, struct recording *recording,
		      const struct black_box_file *file, uint64_t time_ns)
{
	struct moment_source *self = calloc(1, sizeof(*self));
	size_t books = recording ? recording_facts(recording)->books : 0;
	int r = 0;

	if (!self)
		return -ENOMEM;
	self->source.ops = &moment_source_ops;
	self->time_ns = time_ns;
	if (recording)
		recording_limit(recording, MOMENT_SOURCE_BOOK_ROOM);
	for (size_t i = 0; r == 0 && i < bits_min(books, file->count); i++)
		r = moment_source_add(self, recording, &file->owners[i], i);
	if (r < 0) {
		moment_source_free(&self->source);
		return r;
	}
	if (self->count > 0)
		qsort(self->books, self->count, sizeof(*self->books), moment_source_compare);
	*ret_source = &self->source;
	return 0;
}

void moment_source_sources(struct source *source, struct collect_sources *ret_sources)
{
	*ret_sources = (struct collect_sources){
		.books = source,
		.notes_overlaps = true,
		.is_recorded = true,
		.recorded_ns = moment_source(source)->time_ns,
	};
}

uint64_t moment_source_size(struct source *source)
{
	return moment_source(source)->size;
}

size_t moment_source_books(struct source *source)
{
	return moment_source(source)->count;
}

size_t moment_source_unknown(struct source *source)
{
	return moment_source(source)->unknown;
}
