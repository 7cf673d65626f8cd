/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was live when its device, mesh or submesh was closed. Closing ends it, so it is not a leak; but some
 * want to know, so whoever asks for it gets it as an incident for each call site, or as a row for each buffer.
 * A free that closing caused is marked as such in the log, and nowhere else: what the log has forgotten is not
 * known, and a note says so.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/types.h"
#include "source/books/book-private.h"
#include "source/books/scan.h"

struct book_held {
	struct book_event *list; /* owned */
	size_t count, capacity;
};

static void book_held_deinit(struct book_held *held)
{
	free(held->list);
}

/* By call site; within one in the order of the log. */
static int book_held_compare(const void *left, const void *right)
{
	const struct book_event *a = left, *b = right;
	uint32_t types[] = {book_meta_type(a->record.meta), book_meta_type(b->record.meta)};

	if (types[0] != types[1])
		return bits_compare(types[0], types[1]);
	if (a->record.stack != b->record.stack)
		return bits_compare(a->record.stack, b->record.stack);
	return bits_compare(a->time, b->time);
}

static int book_held_find(const struct log *log, struct book_held *held)
{
	const uint32_t closed = BOOK_OP_FREE | BOOK_OP_CLOSED;

	for (uint64_t i = 0; i < log->count; i++) {
		const struct book_event *event = &log->events[i];
		struct book_event *list;

		if ((event->op_slot & (BOOK_OP_MASK | BOOK_OP_CLOSED)) != closed ||
		    event->record.meta & BOOK_META_ALIAS ||
		    book_meta_type(event->record.meta) >= BOOK_TYPES)
			continue;
		list = array_grow(held->list, &held->capacity, held->count + 1, sizeof(*list));
		if (!list)
			return -ENOMEM;
		held->list = list;
		list[held->count++] = *event;
	}
	if (held->count)
		qsort(held->list, held->count, sizeof(*held->list), book_held_compare);
	return 0;
}

/* Buffers of one call site. */
static int book_held_add(struct book_reading *reading, uint32_t device,
			 const struct book_event *events, size_t count)
{
	const struct book_event *last = &events[count - 1];
	const struct book_record *record = &events->record;
	struct snapshot_incident incident = {
		.kind = TYPES_HELD_AT_CLOSE,
		.process = reading->process,
		.device = device,
		.type = book_meta_type(record->meta),
		.has_address = count == 1,
		.address = count == 1 ? record->address : 0,
		.largest_free = UINT64_MAX,
		.count = count,
		.time_ns = timebase_ns(&reading->timebase, events->time),
		.last_ns = timebase_ns(&reading->timebase, last->time),
		.first = {.known = true,
			  .time_ns = timebase_ns(&reading->timebase, record->birth),
			  .size = record->size,
			  .name = book_text(reading, record->name),
			  .phase = book_text(reading, record->phase),
			  .stack = book_stack(reading, record->stack),
			  .stack_key = book_stack_key(reading, record->stack)},
		.second = {.known = true,
			   .time_ns = timebase_ns(&reading->timebase, last->time),
			   .thread = book_thread(last->record.thread_space),
			   .stack = book_stack(reading, last->stack),
			   .stack_key = book_stack_key(reading, last->stack)},
	};

	for (size_t i = 0; i < count; i++)
		incident.size += events[i].record.size; /* each has less than 2^40 */
	return snapshot_add_incident(reading->snapshot, &incident);
}

static int book_held_add_sites(struct book_reading *reading, uint32_t device,
			       const struct book_held *held)
{
	size_t first = 0;
	int r = 0;

	for (size_t i = 1; r == 0 && i <= held->count; i++) {
		const struct book_event *event = &held->list[i];

		if (i < held->count && event->record.stack == event[-1].record.stack &&
		    book_meta_type(event->record.meta) == book_meta_type(event[-1].record.meta))
			continue;
		r = book_held_add(reading, device, &held->list[first], i - first);
		first = i;
	}
	return r;
}

static int book_held_add_rows(struct book_reading *reading, uint32_t device,
			      const struct book_held *held)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < held->count; i++)
		r = book_rows_closed(reading, device, &held->list[i].record);
	return r;
}

/* What is known of one device: since when, and what was held. */
static int book_held_shard(struct book_reading *reading, uint32_t device, bool rows)
{
	CLEANUP(book_held_deinit) struct book_held held = {0};
	CLEANUP(log_deinit) struct log log = {0};
	struct reader *reader = &reading->book->reader;
	uint64_t *forgotten = &book_process(reading)->forgotten_ns;
	struct book_shard page;
	int r = file_read(reader->file, book_shard_offset(device), &page, sizeof(page));

	if (r == 0)
		r = book_log_read(reader, &page, device, &log);
	if (r == 0)
		r = book_held_find(&log, &held);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || log.first > 1) {
		*forgotten = bits_max(*forgotten,
				      r < 0 || log.count == 0
					      ? UINT64_MAX
					      : timebase_ns(&reading->timebase, log.events->time));
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": its history is not complete; " TYPES_HELD_INCOMPLETE,
			      reading->book->owner.id.pid, device);
	}
	if (r == 0)
		r = rows ? book_held_add_rows(reading, device, &held)
			 : book_held_add_sites(reading, device, &held);
	return r == -ENOBUFS || r == -ENOMEM ? r : 0;
}

int book_collect_held(struct book_reading *reading, bool rows)
{
	struct reader *reader = &reading->book->reader;
	int64_t device = reader_next_shard(reader, 0);
	int r = 0;

	while (r == 0 && device >= 0) {
		if (!rows || book_wants_rows(reading, (uint32_t)device))
			r = book_held_shard(reading, (uint32_t)device, rows);
		device = reader_next_shard(reader, (uint32_t)device + 1);
	}
	return r;
}
