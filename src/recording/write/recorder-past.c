/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the recording of a device begins. If its ring still has the first event, with nothing. Else
 * with an exact state of now, from which the ring's events are undone, so that the recording begins
 * as far in the past as the ring reaches.
 *
 * Three facts of that past are not in the ring: the thread that allocated a buffer which was freed
 * since (the one that freed it is taken), a peak that was exceeded since (what was in use then is
 * taken), and the time of the last event before.
 */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "book/format/event.h"
#include "recording/write/recorder-private.h"
#include "source/books/scan.h"

/*
 * An owner has stored to every event it counts: holes mean that the book claims events which cost it
 * nothing, and would make us pay for them. No holes can be made in a book, so each part is looked at
 * once.
 */
int recorder_past_is_solid(struct recorder_shard *shard, struct reader *reader)
{
	const struct log_place *place = &shard->place;
	uint64_t head, from = bits_max(shard->solid, 1), to;
	int r;

	if (shard->solid == place->events)
		return 0;
	r = log_head(reader, shard->device, &head);
	to = r < 0 ? 0 : bits_min(head + 1, place->events);
	if (to <= from)
		return r;
	r = reader_is_solid(reader, place->offset + from * sizeof(struct book_event),
			    place->offset + to * sizeof(struct book_event));
	if (r > 0)
		shard->solid = to;
	else if (r == 0)
		return -EBADMSG;
	return r < 0 ? r : 0;
}

/* Live records and counters of the view. */
int recorder_past_take_view(struct recorder_shard *shard, const struct view *view)
{
	struct view_iterator it = {0};
	uint64_t slots = 0;
	int r;

	columns_table_deinit(&shard->table);
	if (view->segment_count > 0)
		slots = (uint64_t)(view->segment_count - 1) * BOOK_SEGMENT_SLOTS +
			view->segments[view->segment_count - 1].count;
	r = columns_table_grow(&shard->table, slots);
	if (r < 0)
		return r;
	while (view_next(view, &it))
		shard->table.records[view_slot(&it)] = *it.record;
	memcpy(shard->counters.hot, view->hot, sizeof(view->hot));
	memcpy(shard->counters.cold, view->cold, sizeof(view->cold));
	memcpy(shard->counters.warm, view->warm, sizeof(view->warm));
	shard->done = view->number;
	return 0;
}

static void past_undo_record(struct columns_table *table, const struct book_event *event)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK;
	uint32_t slot = event->op_slot >> 8;
	struct book_record *record;

	if (!event_has_slot(op) || slot >= table->count)
		return;
	record = &table->records[slot];
	switch (op) {
	case BOOK_OP_ALLOC:
		memset(record, 0, sizeof(*record));
		break;
	case BOOK_OP_REF:
		record->meta -= book_meta_refs(record->meta) < BOOK_META_REFS_MAX;
		break;
	case BOOK_OP_UNREF:
		record->meta += book_meta_refs(record->meta) < BOOK_META_REFS_MAX;
		break;
	default:
		*record = event->record;
		break;
	}
}

/* A peak that is older than the ring still holds; any other is found again by what follows. */
static void past_peaks(struct recorder_shard *shard, const struct log *log, uint64_t last)
{
	uint64_t start = log->events[0].time;
	bool is_reset[BOOK_TYPES] = {0};

	for (uint64_t i = 0; i <= last - log->first; i++) {
		uint32_t type = book_meta_type(log->events[i].record.meta);

		if ((log->events[i].op_slot & BOOK_OP_MASK) == BOOK_OP_PEAK_RESET &&
		    type < BOOK_TYPES)
			is_reset[type] = true;
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct book_hot *hot = &shard->counters.hot[type];

		if (is_reset[type] || hot->peak_time >= start) {
			hot->peak = hot->bytes;
			hot->peak_time = hot->bytes ? start : 0;
		}
		hot->last = bits_min(hot->last, start);
	}
}

/* Events first .. `done` are undone. */
static void past_undo(struct recorder_shard *shard, struct reader *reader)
{
	const struct log *log = &shard->log;
	uint64_t last = shard->done;

	for (uint64_t n = last; n >= log->first; n--) {
		const struct book_event *event = &log->events[n - log->first];

		past_undo_record(&shard->table, event);
		recorder_uncount(&shard->counters, reader, event);
	}
	past_peaks(shard, log, last);
	shard->done = log->first - 1;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct recorder_counters *counters = &shard->counters;

		counters->hot[type].number = bits_min(counters->hot[type].number, shard->done);
		counters->cold[type].number = bits_min(counters->cold[type].number, shard->done);
		counters->warm[type].number = bits_min(counters->warm[type].number, shard->done);
	}
}

/* Reads what the ring still has; the owner goes on meanwhile, so the oldest part may be gone. */
static int past_read_ring(struct recorder_shard *shard, struct reader *reader, uint64_t number)
{
	uint64_t events = shard->place.events - shard->place.events / 8;
	uint64_t left;
	int r;

	for (uint32_t i = 0; i < 4; i++, events /= 2) {
		uint64_t first = number > events ? number - events + 1 : 1;

		log_start(&shard->log, &shard->place, first);
		r = recorder_past_is_solid(shard, reader);
		if (r == 0)
			r = log_drain_part(&shard->log, reader, UINT64_MAX, &left);
		if (r == 0 && shard->log.first + shard->log.count > number)
			return 0;
		if (r < 0 && r != -EOVERFLOW)
			return r;
	}
	log_start(&shard->log, &shard->place, number + 1);
	return 0;
}

/* The ring was never full: everything since the device's first event is there. */
static bool past_has_all(struct recorder_shard *shard, struct reader *reader)
{
	uint64_t left;

	log_start(&shard->log, &shard->place, 1);
	return log_drain_part(&shard->log, reader, UINT64_MAX, &left) == 0;
}

int recorder_past_begin(struct recorder *recorder, struct recorder_book *book,
			struct recorder_shard *shard)
{
	struct reader *reader = &book->book->reader;
	struct view *view = &recorder->view;
	int r;

	r = recorder_past_is_solid(shard, reader);
	if (r < 0)
		return r;
	if (past_has_all(shard, reader))
		return 0;
	log_start(&shard->log, &shard->place, 1);
	r = view_read(view, reader, shard->device, book->book->alive ? VIEW_LIVING : VIEW_DEAD);
	if (r == 0 && !view->rows_exact)
		r = -EAGAIN;
	if (r == 0)
		r = recorder_past_take_view(shard, view);
	if (r == 0)
		r = past_read_ring(shard, reader, view->number);
	if (r == 0 && shard->log.count > 0 && shard->log.first <= shard->done)
		past_undo(shard, reader);
	return r;
}
