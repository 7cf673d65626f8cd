/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What books still know about one address. The table is read before the log: whatever happens in
 * between is in the log, and the log takes precedence.
 */

#include "source/books/address-history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/read/log.h"
#include "book/read/view.h"
#include "model/filter.h"
#include "model/history.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/timebase.h"
#include "source/books/book-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

struct address_history {
	struct scan_book *book;
	struct snapshot *snapshot;
	uint64_t address;
	uint32_t types;
	struct book_reading reading;

	/* For one shard. */
	struct history_logged *events;
	size_t event_count, event_capacity;
	struct book_graves graves; /* those of the address come first */
	size_t grave_count;
	struct book_record records[BOOK_TYPES];
	size_t record_count;
	bool complete;
};

static void address_history_deinit(struct address_history *trail)
{
	book_reading_deinit(&trail->reading);
	free(trail->events);
	book_graves_deinit(&trail->graves);
}

static const char *address_history_text(void *context, uint32_t id)
{
	struct address_history *trail = context;
	size_t length;
	const char *bytes = reader_string(&trail->book->reader, id, &length);

	return bytes ? snapshot_text(trail->snapshot, bytes, length) : NULL;
}

static const struct stack *address_history_stack(void *context, uint32_t id)
{
	struct address_history *trail = context;

	return book_stack(&trail->reading, id);
}

static int address_history_keep_event(struct address_history *trail, const struct book_event *event,
				      uint64_t number)
{
	struct history_logged *events;

	events = array_grow(trail->events, &trail->event_capacity, trail->event_count + 1,
			    sizeof(*events));
	if (!events)
		return -ENOMEM;
	trail->events = events;
	events[trail->event_count++] = (struct history_logged){number, *event};
	return 0;
}

static int address_history_read_log(struct address_history *trail, const struct book_shard *page,
				    uint32_t device)
{
	CLEANUP(log_deinit) struct log log = {0};
	int r = book_log_read(&trail->book->reader, page, device, &log);

	if (r < 0)
		return r;
	trail->complete = log.first == 1;
	for (uint64_t i = 0; r == 0 && i < log.count; i++) {
		if (log.events[i].record.address == trail->address)
			r = address_history_keep_event(trail, &log.events[i], log.first + i);
	}
	return r;
}

/* Keeps the graves of the address. */
static int address_history_read_graves(struct address_history *trail, const struct book_shard *page,
				       uint32_t device)
{
	struct book_graves *graves = &trail->graves;
	int r = book_graves_read(&trail->book->reader, page, device, graves);

	trail->grave_count = 0;
	for (uint64_t i = graves->first; r == 0 && i < graves->count; i++) {
		if (graves->list[i].address == trail->address)
			graves->list[trail->grave_count++] = graves->list[i];
	}
	return r;
}

static void address_history_find_records(struct address_history *trail, const struct view *view)
{
	struct view_iterator it = {0};

	trail->record_count = 0;
	while (view_next(view, &it) && trail->record_count < BOOK_TYPES) {
		if (it.record->address == trail->address)
			trail->records[trail->record_count++] = *it.record;
	}
}

static int address_history_read_shard(struct address_history *trail, struct view *view,
				      uint32_t device)
{
	struct reader *reader = &trail->book->reader;
	struct book_shard page;
	int r;

	trail->event_count = 0;
	r = view_read(view, reader, device, scan_book_owner(trail->book));
	if (r < 0)
		return r;
	address_history_find_records(trail, view);
	if (!view->rows_exact)
		trail->snapshot->exact = false;
	r = file_read(reader->file, book_shard_offset(device), &page, sizeof(page));
	if (r == 0)
		r = address_history_read_graves(trail, &page, device);
	if (r == 0)
		r = address_history_read_log(trail, &page, device);
	return r;
}

static int address_history_collect_shard(struct address_history *trail, struct view *view,
					 uint32_t process, uint32_t device, struct history *history)
{
	struct history_shard shard = {
		.process = process,
		.device = device,
		.address = trail->address,
		.types = trail->types,
		.text = address_history_text,
		.stack = address_history_stack,
		.context = trail,
	};
	struct timebase timebase;
	int r = address_history_read_shard(trail, view, device);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		trail->snapshot->exact = false;
		snapshot_note(trail->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32 ": its history cannot be read: %s",
			      trail->book->owner.id.pid, device,
			      r == -EOVERFLOW ? "the process is too fast" : reader_strerror(r));
		return 0;
	}
	book_timebase(trail->book, &timebase);
	shard.timebase = &timebase;
	shard.complete = trail->complete;
	shard.events = trail->events;
	shard.event_count = trail->event_count;
	shard.graves = trail->graves.list;
	shard.grave_count = trail->grave_count;
	shard.records = trail->records;
	shard.record_count = trail->record_count;
	return history_add_shard(history, &shard);
}

int address_history_collect(struct scan_book *book, uint64_t address,
			    const struct snapshot_request *request, struct view *view,
			    struct snapshot *snapshot, struct history *history)
{
	const struct filter *filter = &request->filter;
	CLEANUP(address_history_deinit)
	struct address_history trail = {
		.book = book,
		.snapshot = snapshot,
		.address = address,
		.reading = {.book = book, .snapshot = snapshot, .request = request},
	};
	int64_t device = reader_next_shard(&book->reader, 0);
	uint32_t process;
	int r;

	if (!filter_wants_pid(filter, book->owner.id.pid))
		return 0;
	if (filter->has_type)
		trail.types = 1u << filter->type;
	r = book_add_process(book, snapshot, &process);
	while (r == 0 && device >= 0) {
		struct book_device facts = {0};

		/* An undeclared device has no unique id to filter by. */
		(void)reader_device(&book->reader, (uint32_t)device, &facts);
		if (snapshot_request_wants(request, &snapshot->processes[process], (uint32_t)device,
					   facts.unique_id)) {
			struct snapshot_part *part =
				snapshot_part(snapshot, process, (uint32_t)device);

			if (!part)
				return -ENOMEM;
			part->facts.unique_id = facts.unique_id;
			r = address_history_collect_shard(&trail, view, process, (uint32_t)device,
							  history);
		}
		device = reader_next_shard(&book->reader, (uint32_t)device + 1);
	}
	return r;
}
