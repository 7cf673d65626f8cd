/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adds buffers of a view to the snapshot: all of them, a page, or the first few in some order. A
 * page begins after the position where the previous one ended. When it is full, one more row is
 * looked for, to know whether there is another page.
 */

#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "book/read/view.h"
#include "model/snapshot-request.h"
#include "model/top-n.h"
#include "model/types.h"
#include "source/books/book-private.h"
#include "source/books/scan.h"

static bool book_is_page(const struct book_reading *reading)
{
	return reading->request->limit && !reading->request->sorted;
}

/*
 * Where the book is relative to the end of the last page: negative = before it, 0 = the page ended
 * in it.
 */
static int book_rows_side(const struct book_reading *reading)
{
	const struct snapshot_request *request = reading->request;

	if (!book_is_page(reading) || !request->has_after)
		return 1;
	return -page_cursor_compare_book(&request->after, reading->book->owner.id.pid,
					 reading->book->id.inode);
}

static struct page_cursor book_rows_place(const struct book_reading *reading, uint32_t slot)
{
	return (struct page_cursor){
		.pid = reading->book->owner.id.pid,
		.inode = reading->book->id.inode,
		.device = reading->view->device,
		.slot = slot,
	};
}

bool book_rows_done(const struct book_reading *reading)
{
	return book_is_page(reading) && reading->snapshot->has_next;
}

bool book_rows_touch(const struct book_reading *reading)
{
	const struct snapshot_request *request = reading->request;

	if (!request->limit)
		return true;
	return filter_wants_pid(&request->filter, reading->book->owner.id.pid) &&
	       book_rows_side(reading) >= 0 && !book_rows_done(reading);
}

uint32_t book_rows_first_device(const struct book_reading *reading)
{
	return book_rows_side(reading) == 0 ? reading->request->after.device : 0;
}

uint32_t book_rows_first(const struct book_reading *reading, uint32_t device)
{
	const struct page_cursor *after = &reading->request->after;

	return book_rows_side(reading) == 0 && after->device == device ? after->slot + 1 : 0;
}

/* A page that took too long ends early, and the next one continues from there. */
void book_rows_late(struct book_reading *reading, uint32_t slot)
{
	struct snapshot *snapshot = reading->snapshot;

	if (book_is_page(reading)) {
		snapshot->next = book_rows_place(reading, slot);
		snapshot->has_next = true;
		return;
	}
	snapshot->exact = false;
	snapshot_note(snapshot,
		      "pid %" PRIu32 ", device %" PRIu32 ": has more buffers than can be read in "
		      "time",
		      reading->book->owner.id.pid, reading->view->device);
}

/* Adds a row to a page that may already be full. */
static int book_rows_page(struct book_reading *reading, const struct snapshot_buffer *buffer,
			  uint32_t slot)
{
	struct snapshot *snapshot = reading->snapshot;
	int r = snapshot_add_buffer(snapshot, buffer);

	if (r == 0)
		snapshot->next = book_rows_place(reading, slot);
	return r;
}

/* Cached because shapes repeat even more than names. @id is not 0. */
static struct book_shape book_rows_shape(struct book_reading *reading, uint32_t id)
{
	struct book_caches *caches = book_caches(reading);
	uint32_t place = id % BOOK_SHAPES;

	if (!caches)
		return reader_shape(&reading->book->reader, id);
	if (caches->shapes[place].id != id) {
		caches->shapes[place].shape = reader_shape(&reading->book->reader, id);
		caches->shapes[place].id = id;
	}
	return caches->shapes[place].shape;
}

/* Fills in the rest of a row, which costs more than its numbers. */
static void book_rows_fill(struct book_reading *reading, const struct book_record *record,
			   struct snapshot_buffer *buffer)
{
	buffer->name = book_text(reading, record->name);
	buffer->phase = book_text(reading, record->phase);
	buffer->stack = book_stack(reading, record->stack);
	if (record->shape) {
		struct book_shape shape = book_rows_shape(reading, record->shape);

		buffer->kernel_sort = (uint8_t)bits_min(shape.kernel_sort, 255);
		buffer->banks = shape.banks;
		buffer->size_per_bank = shape.size_per_bank;
	}
}

static int book_rows_add(struct book_reading *reading, const struct book_record *record,
			 struct snapshot_buffer *buffer, uint32_t slot)
{
	const struct snapshot_request *request = reading->request;
	struct snapshot *snapshot = reading->snapshot;

	if (request->limit && request->sorted) {
		if (!top_n_wants(snapshot, buffer, request->limit, request->order))
			return 0;
		book_rows_fill(reading, record, buffer);
		return top_n_add(snapshot, buffer, request->limit, request->order);
	}
	if (request->limit && snapshot->buffer_count >= request->limit) {
		snapshot->has_next = true;
		return 0;
	}
	book_rows_fill(reading, record, buffer);
	return request->limit ? book_rows_page(reading, buffer, slot)
			      : snapshot_add_buffer(snapshot, buffer);
}

/* All but texts. */
static struct snapshot_buffer book_rows_row(const struct book_reading *reading, uint32_t device,
					    const struct book_record *record)
{
	return (struct snapshot_buffer){
		.process = reading->process,
		.device = device,
		.address = record->address,
		.size = record->size,
		.born_ns = timebase_ns(&reading->timebase, record->birth),
		.birth = record->birth,
		.thread = book_thread(record->thread_space),
		.refs = book_meta_refs(record->meta),
		.space = book_space(record->thread_space),
		.type = (uint8_t)book_meta_type(record->meta),
		.flags = (uint8_t)book_meta_flags(record->meta),
	};
}

/* The phase that identifies a process, for processes with rows. */
static void book_rows_phase(struct book_reading *reading)
{
	if (!book_process(reading)->phase)
		book_process(reading)->phase =
			book_text(reading, reading->book->reader.header.first_phase);
}

int book_rows_closed(struct book_reading *reading, uint32_t device,
		     const struct book_record *record)
{
	struct snapshot_buffer buffer = book_rows_row(reading, device, record);

	if (!filter_wants_type(&reading->request->filter, buffer.type))
		return 0;
	book_rows_phase(reading);
	buffer.closed = true;
	book_rows_fill(reading, record, &buffer);
	return snapshot_add_buffer(reading->snapshot, &buffer);
}

int book_rows(struct book_reading *reading)
{
	const struct filter *filter = &reading->request->filter;
	uint32_t first = book_rows_first(reading, reading->view->device);
	struct view_iterator it = {0};
	int r = 0;

	book_rows_phase(reading);
	while (r == 0 && !book_rows_done(reading) && view_next(reading->view, &it)) {
		const struct book_record *record = it.record;
		struct snapshot_buffer buffer;

		if (view_slot(&it) < first ||
		    !filter_wants_type(filter, book_meta_type(record->meta)))
			continue;
		buffer = book_rows_row(reading, reading->view->device, record);
		r = book_rows_add(reading, record, &buffer, view_slot(&it));
	}
	return r == -ENOBUFS ? 0 : r;
}
