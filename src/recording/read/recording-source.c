/* SPDX-License-Identifier: Apache-2.0 */

/* All books of a recording as they were at one moment. */

#include "recording/read/recording-source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/read/view.h"
#include "model/snapshot-request.h"
#include "recording/read/recording-peaks.h"
#include "recording/read/recording-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/collect.h"
#include "source/source.h"

struct recording_source {
	struct source source;
	struct recording *recording; /* borrowed */
	struct recording_moment moment;
	struct scan *scan;
	uint64_t held; /* bytes of memory in its books */
	struct view view;
};

static int recording_source_collect(struct source *source, const struct snapshot_request *request,
				    struct snapshot *snapshot)
{
	struct recording_source *self = container_of(source, struct recording_source, source);
	struct snapshot_request of_dead = *request;
	int r = 0;

	/* As for books of this machine: what the dead have left is shown on request. */
	of_dead.buffers = request->buffers && (request->filter.pid || request->ended);
	for (size_t i = 0; r == 0 && i < self->scan->count; i++) {
		struct scan_book *book = self->scan->books[i];
		struct recording_peaks peaks = {
			.recording = self->recording,
			.moment = &self->moment,
			.request = request,
			.view = &self->view,
			.snapshot = snapshot,
			.book = book,
		};

		if (request->at_peak) {
			/* See restore_own(). */
			r = recording_peaks_collect(&peaks, (size_t)book->id.inode - 1);
			continue;
		}
		r = book_collect(book, book->alive ? request : &of_dead, &self->view, snapshot);
	}
	return r;
}

static void recording_source_free(struct source *source)
{
	struct recording_source *self = container_of(source, struct recording_source, source);

	scan_free(self->scan);
	view_deinit(&self->view);
	free(self);
}

static const struct source_ops recording_source_ops = {
	.name = "recording",
	.collect = recording_source_collect,
	.free = recording_source_free,
};

static int recording_source_add(struct recording_source *self, size_t number)
{
	struct scan_book *book;
	struct stat st;
	int r = recording_restore(self->recording, number, &self->moment, &book);

	if (r == -ENOENT || r == -EBADMSG)
		return 0; /* not yet there, or not readable */
	if (r < 0)
		return r;
	r = fstat(book->file.fd, &st) < 0 ? -errno : scan_put_consume(self->scan, book);
	if (r < 0)
		return r;
	self->held += (uint64_t)st.st_blocks * 512;
	return self->held > self->recording->room ? -EFBIG : 0;
}

int recording_source_new(struct source **ret_source, struct recording *recording,
			 const struct recording_moment *moment)
{
	struct recording_source *self = calloc(1, sizeof(*self));
	int r;

	if (!self)
		return -ENOMEM;
	self->source.ops = &recording_source_ops;
	self->recording = recording;
	self->moment = *moment;
	r = scan_new(&self->scan);
	for (size_t i = 0; r == 0 && i < recording->facts.books; i++)
		r = recording_source_add(self, i);
	if (r < 0) {
		recording_source_free(&self->source);
		return r;
	}
	scan_sort(self->scan);
	*ret_source = &self->source;
	return 0;
}

struct scan *recording_source_scan(struct source *source)
{
	return container_of(source, struct recording_source, source)->scan;
}

void recording_source_sources(struct source *source, struct collect_sources *ret_sources)
{
	struct recording_source *self = container_of(source, struct recording_source, source);

	*ret_sources = (struct collect_sources){
		.books = source,
		.notes_overlaps = true,
		.is_recorded = true,
		.recorded_ns = self->moment.time_ns,
	};
}
