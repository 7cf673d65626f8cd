/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading a shard of a dead and of a living owner, see docs/book-format.md.
 *
 * Dead: copy the records; take the counter blocks with the larger numbers; apply every published
 * event above them. That can only be the last two, because a size change publishes two together.
 *
 * Living: s0 = head; take the newest checkpoint below it; copy the records in chunks and drain the
 * log between them; s1 = head; replay up to s1, into the counters from the checkpoint on, into the
 * records from s0 itself, because event s0 may be published but not yet applied. If the ring
 * wrapped over an event that was needed, start over.
 */

#include "book/read/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "book/format/book-clock.h"
#include "book/format/event.h"
#include "book/read/idle-counters.h"
#include "book/read/log.h"

/* A chunk takes about 100 us to copy: even at full rate no ring of 16384 events wraps. */
#define VIEW_CHUNK (512u << 10)
#define VIEW_PATIENCE_NS 50000000u
#define VIEW_TOTALS_TRIES 64

/* What is read of a shard before its records. */
struct view_shard {
	struct book_shard page;
	struct log_place place;
	uint64_t slots;
};

static int view_page(struct reader *reader, uint32_t device, struct view_shard *ret_shard)
{
	struct book_shard *page = &ret_shard->page;
	int r;

	r = file_read(reader->file, book_shard_offset(device), page, sizeof(*page));
	if (r < 0)
		return r;
	if (page->state != 1)
		return -ENOENT;
	if (page->slots > BOOK_SLOTS_MAX || page->head > LOG_NUMBER_MAX)
		return -EBADMSG;
	ret_shard->slots = page->slots;
	return log_find(reader, page, device, &ret_shard->place);
}

/* Makes room for @count records of a segment; new ones are dead. */
static int view_segment_room(struct view_segment *segment, uint32_t count)
{
	uint32_t capacity = (uint32_t)bits_min(bits_align_up(count, 256), BOOK_SEGMENT_SLOTS);
	struct book_record *records;

	if (count > segment->capacity) {
		records = realloc(segment->records, capacity * sizeof(*records));
		if (!records)
			return -ENOMEM;
		segment->records = records;
		segment->capacity = capacity;
	}
	if (count > segment->count) {
		memset(segment->records + segment->count, 0,
		       (count - segment->count) * sizeof(*records));
		segment->count = count;
	}
	return 0;
}

/* Directory entries ascend, as the pool is only claimed upwards: no segment is used twice. */
static int view_check_directory(struct reader *reader, const struct view_shard *shard,
				uint32_t device)
{
	uint64_t segments = (shard->slots + BOOK_SEGMENT_SLOTS - 1) / BOOK_SEGMENT_SLOTS;
	uint64_t free_from = 0;

	for (uint64_t i = 0; i < segments; i++) {
		uint32_t unit = shard->page.directory[i];

		if (unit < free_from || !reader_segment_is(reader, unit, BOOK_SEGMENT_UNITS, device,
							   BOOK_SEGMENT_RECORDS))
			return -EBADMSG;
		free_from = (uint64_t)unit + BOOK_SEGMENT_UNITS;
	}
	return 0;
}

/*
 * Copies one chunk. An owner has stored to every slot it counts except the newest: a hole before
 * @solid means that the book claims records never written, and would make us pay for them.
 */
static int view_copy_chunk(struct reader *reader, uint64_t offset, void *to, size_t length,
			   uint64_t solid)
{
	int r = reader_is_solid(reader, offset, bits_min(offset + length, solid));

	if (r < 0)
		return r;
	if (r == 0)
		return -EBADMSG;
	return file_read(reader->file, offset, to, length);
}

static bool view_has_segment(const struct view *view, uint32_t segment)
{
	return segment >= view->first && segment < view->end;
}

/* Copies the records of the requested part, draining @log between chunks if there is one. */
static int view_copy_records(struct view *view, struct reader *reader,
			     const struct view_shard *shard, struct log *log)
{
	uint32_t segments =
		(uint32_t)((shard->slots + BOOK_SEGMENT_SLOTS - 1) / BOOK_SEGMENT_SLOTS);

	view->segment_count = segments;
	for (uint32_t i = 0; i < segments; i++) {
		struct view_segment *segment = &view->segments[i];
		uint64_t base = book_unit_offset(shard->page.directory[i]);
		uint64_t count = bits_min(shard->slots - (uint64_t)i * BOOK_SEGMENT_SLOTS,
					  BOOK_SEGMENT_SLOTS);
		uint64_t bytes = count * sizeof(struct book_record);
		uint64_t solid =
			bits_align_down(base + bytes - sizeof(struct book_record), BOOK_PAGE);
		int r;

		if (!view_has_segment(view, i)) {
			/* A walk through all parts must not end with all of them in memory. */
			free(segment->records);
			*segment = (struct view_segment){0};
			continue;
		}
		if (segment->capacity < count) {
			segment->count = 0;
			r = view_segment_room(segment, (uint32_t)count);
			if (r < 0)
				return r;
		}
		segment->count = (uint32_t)count;
		for (uint64_t at = 0; at < bytes; at += VIEW_CHUNK) {
			r = view_copy_chunk(reader, base + at, (uint8_t *)segment->records + at,
					    bits_min(bytes - at, VIEW_CHUNK), solid);
			if (r < 0)
				return r;
			if (log) {
				r = log_drain(log, reader);
				if (r < 0)
					return r;
			}
		}
	}
	return 0;
}

/* Applies an event to the copied records. */
static int view_apply_record(struct view *view, const struct book_event *event)
{
	uint32_t op = event->op_slot & 0xff;
	uint32_t slot = event->op_slot >> 8;
	uint32_t i = slot / BOOK_SEGMENT_SLOTS;
	struct view_segment *segment = &view->segments[i];
	uint32_t within = slot % BOOK_SEGMENT_SLOTS;
	int r;

	if (!event_has_slot(op))
		return 0;
	if (i >= view->segment_count) {
		/* A new segment begins with its first slot; books do not grow in any other way. */
		if (i != view->segment_count || within != 0)
			return -EBADMSG;
		view->segment_count++;
		segment->count = 0;
	}
	if (!view_has_segment(view, i))
		return 0;
	if (within > segment->count)
		return -EBADMSG;
	r = view_segment_room(segment, within + 1);
	if (r < 0)
		return r;
	segment->records[within] = event->record;
	if ((op & BOOK_OP_MASK) == BOOK_OP_FREE)
		segment->records[within].meta = 0;
	return 0;
}

/* Applies an event to the counters. */
static void view_apply_counters(struct view *view, struct reader *reader,
				const struct book_event *event, uint64_t number)
{
	uint32_t op = event->op_slot & 0xff;
	uint32_t type = book_meta_type(event->record.meta);

	if (type >= BOOK_TYPES)
		return;
	if ((op & BOOK_OP_MASK) == BOOK_OP_LOST_ALLOC)
		view->inexact |= BOOK_INEXACT_LOW << type; /* marked after the page was read */
	if (reader_has_warm(reader) && event_is_warm(op, &event->record) &&
	    number > view->warm[type].number) {
		event_count_warm(op, reader_occupied(reader, &event->record), &view->warm[type]);
		view->warm[type].number = number;
	}
	if (number > view->hot[type].number) {
		event_count_hot(op, event->time, &event->record, &view->hot[type]);
		view->hot[type].number = number;
	}
	if (event_is_rare(op) && number > view->cold[type].number) {
		event_count_cold(op, &view->cold[type]);
		view->cold[type].number = number;
	}
}

/* What the rows of each type sum to. */
struct view_sums {
	uint64_t bytes, buffers, occupied, known;
};

static void view_sum(struct view_sums *sums, struct reader *reader,
		     const struct book_record *record)
{
	sums->bytes += event_bytes(record);
	sums->buffers++;
	if (event_is_warm(BOOK_OP_ALLOC, record)) {
		uint64_t occupied = reader_occupied(reader, record);

		sums->known += occupied != EVENT_OCCUPIED_UNKNOWN;
		sums->occupied += occupied != EVENT_OCCUPIED_UNKNOWN ? occupied : 0;
	}
}

/* Checks every row once: drops invalid ones; the rest must sum to the counters. */
static void view_check_rows(struct view *view, struct reader *reader)
{
	struct view_sums sums[BOOK_TYPES] = {0};

	view->live = 0;
	view->bad_rows = 0;
	for (uint32_t i = 0; i < view->segment_count; i++) {
		struct view_segment *segment = &view->segments[i];

		for (uint32_t k = 0; k < segment->count; k++) {
			struct book_record *record = &segment->records[k];
			uint32_t type = book_meta_type(record->meta);

			if (!view_is_live(record))
				continue;
			if (type >= BOOK_TYPES || book_meta_refs(record->meta) == 0) {
				record->meta = 0;
				view->bad_rows++;
				continue;
			}
			view_sum(&sums[type], reader, record);
			view->live++;
		}
	}
	view->adds_up = view->bad_rows == 0;
	if (view->first > 0 || view->end < view->segment_count)
		return;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (sums[type].bytes != view->hot[type].bytes ||
		    sums[type].buffers != view->hot[type].buffers ||
		    sums[type].occupied != view->warm[type].occupied ||
		    sums[type].known != view->warm[type].known)
			view->adds_up = false;
	}
}

static int view_read_dead(struct view *view, struct reader *reader, uint32_t device, bool rows)
{
	struct view_shard shard;
	struct book_event events[2];
	uint64_t from;
	int r;

	r = view_page(reader, device, &shard);
	if (r < 0)
		return r;
	view->number = shard.page.head;
	view->inexact = shard.page.inexact;
	idle_counters_choose(&shard.page, view->hot, view->cold);
	if (reader_has_warm(reader))
		idle_counters_choose_warm(&shard.page, view->warm);
	else
		memset(view->warm, 0, sizeof(view->warm));
	view->segment_count = 0;
	if (rows) {
		r = view_check_directory(reader, &shard, device);
		if (r == 0)
			r = view_copy_records(view, reader, &shard, NULL);
		if (r < 0)
			return r;
	}
	from = view->number > 1 ? view->number - 1 : 1;
	r = log_read(&shard.place, reader, from, view->number, events);
	if (r < 0)
		return r;
	for (uint64_t n = from; n <= view->number; n++) {
		if (rows) {
			r = view_apply_record(view, &events[n - from]);
			if (r < 0)
				return r;
		}
		view_apply_counters(view, reader, &events[n - from], n);
	}
	view->rows_exact = rows;
	return 0;
}

/* The newest checkpoint below @head, or all zeros at event 0 if there is none yet. */
static int view_checkpoint(struct view *view, struct reader *reader, uint32_t device,
			   const struct book_shard *page, uint64_t head, uint64_t *ret_number)
{
	uint64_t offset = book_shard_offset(device) + offsetof(struct book_shard, checkpoint);
	struct book_checkpoint checkpoint;
	uint64_t best = 0, again;
	uint32_t which = 0;
	int r;

	for (uint32_t i = 0; i < BOOK_CHECKPOINTS; i++) {
		uint64_t number = page->checkpoint[i].number;

		if (number < head && number > best) {
			best = number;
			which = i;
		}
	}
	memset(view->hot, 0, sizeof(view->hot));
	memset(view->cold, 0, sizeof(view->cold));
	memset(view->warm, 0, sizeof(view->warm));
	*ret_number = best;
	if (best == 0)
		return 0;
	offset += which * sizeof(checkpoint);
	/* Pairs with the release in shard_checkpoint(), seen by @page: it is complete. */
	r = file_read(reader->file, offset, &checkpoint, sizeof(checkpoint));
	if (r < 0)
		return r;
	/* Pairs with the barrier after its 0 there: nothing newer was copied. */
	r = file_read(reader->file, offset, &again, sizeof(again));
	if (r < 0)
		return r;
	if (again != best)
		return -EOVERFLOW;
	memcpy(view->hot, checkpoint.hot, sizeof(view->hot));
	memcpy(view->cold, checkpoint.cold, sizeof(view->cold));
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (reader_has_warm(reader))
			view->warm[type] = (struct book_warm){
				.occupied = checkpoint.occupied[type],
				.known = checkpoint.cold[type].known,
				.unplaced_frees = checkpoint.cold[type].unplaced_frees,
			};
		view->hot[type].number = view->cold[type].number = view->warm[type].number = best;
	}
	return 0;
}

/* One try. -EOVERFLOW: the owner was faster. @ret_head is the head at its start. */
static int view_try_living(struct view *view, struct reader *reader, uint32_t device, bool rows,
			   struct log *log, uint64_t *ret_head)
{
	struct view_shard shard;
	uint64_t number = 0;
	uint64_t s0 = 0;
	int r;

	r = log_head(reader, device, &s0);
	if (r < 0)
		return r;
	*ret_head = s0;
	r = view_page(reader, device, &shard); /* after head: slots cover every event up to it */
	if (r < 0)
		return r;
	r = view_checkpoint(view, reader, device, &shard.page, s0, &number);
	if (r < 0)
		return r;
	log_start(log, &shard.place, number + 1);
	r = log_drain(log, reader);
	if (r < 0)
		return r;
	view->segment_count = 0;
	if (rows) {
		/* `slots` may count a segment whose directory entry was not read: try again. */
		if (view_check_directory(reader, &shard, device) < 0)
			return -EOVERFLOW;
		r = view_copy_records(view, reader, &shard, log);
		if (r == 0)
			r = log_drain(log, reader);
		if (r < 0)
			return r;
	}
	view->inexact = shard.page.inexact;
	for (uint64_t i = 0; i < log->count; i++) {
		if (rows && log->first + i >= s0) {
			r = view_apply_record(view, &log->events[i]);
			if (r < 0)
				return r;
		}
		view_apply_counters(view, reader, &log->events[i], log->first + i);
	}
	view->number = log->first + log->count - 1;
	view->rows_exact = rows;
	return 0;
}

static int view_read_living(struct view *view, struct reader *reader, uint32_t device, bool rows)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	uint64_t patience = VIEW_PATIENCE_NS;
	uint64_t head = 0, last = UINT64_MAX;
	uint32_t totals_tries = 0;
	struct log log = {0};
	int r;

	view->retries = 0;
	for (;;) {
		uint64_t now;

		r = view_try_living(view, reader, device, rows, &log, &head);
		if (r != -EOVERFLOW && r != -ENOBUFS)
			break;
		/* Nothing was written during the last try: an honest shard does not fail then. */
		if (head == last) {
			r = -EBADMSG;
			break;
		}
		last = head;
		now = clock_ns(CLOCK_MONOTONIC);
		if (view->retries++ == 0)
			patience = bits_max(patience, 4 * (now - start));
		if (rows && now - start > patience)
			rows = false; /* then get at least the counters */
		else if (!rows && ++totals_tries > VIEW_TOTALS_TRIES) {
			r = -EAGAIN;
			break;
		}
	}
	log_deinit(&log);
	return r;
}

static int view_read_either(struct view *view, struct reader *reader, uint32_t device,
			    enum view_owner owner, bool rows)
{
	int r;

	view->device = device;
	view->live = 0;
	view->bad_rows = 0;
	view->adds_up = true;
	reader_retry(reader);
	if (owner == VIEW_DEAD)
		r = view_read_dead(view, reader, device, rows);
	else
		r = view_read_living(view, reader, device, rows);
	if (r < 0) {
		view->segment_count = 0;
		return r;
	}
	if (view->rows_exact)
		view_check_rows(view, reader);
	return 0;
}

int view_read_part(struct view *view, struct reader *reader, uint32_t device, enum view_owner owner,
		   uint32_t first, uint32_t count)
{
	view->first = first;
	view->end = first + count;
	return view_read_either(view, reader, device, owner, true);
}

int view_read(struct view *view, struct reader *reader, uint32_t device, enum view_owner owner)
{
	view->first = 0;
	view->end = BOOK_SEGMENTS_MAX;
	return view_read_either(view, reader, device, owner, true);
}

/* Fills the view from @known, which is up to date. */
static void view_recall(struct view *view, uint32_t device, const struct idle_counters *known)
{
	view->device = device;
	view->live = view->bad_rows = 0;
	view->retries = 0;
	view->segment_count = 0;
	view->rows_exact = false;
	view->adds_up = true;
	view->number = known->number;
	view->inexact = known->inexact;
	memcpy(view->hot, known->hot, sizeof(view->hot));
	memcpy(view->cold, known->cold, sizeof(view->cold));
	memcpy(view->warm, known->warm, sizeof(view->warm));
}

static void view_remember(const struct view *view, struct idle_counters *ret_known)
{
	ret_known->number = view->number;
	memcpy(ret_known->hot, view->hot, sizeof(view->hot));
	memcpy(ret_known->cold, view->cold, sizeof(view->cold));
	memcpy(ret_known->warm, view->warm, sizeof(view->warm));
}

int view_read_totals_since(struct view *view, struct reader *reader, uint32_t device,
			   struct idle_counters *known)
{
	int r = idle_counters_read(reader, device, known);

	if (r == 0)
		view_recall(view, device, known);
	if (r <= 0)
		return r;
	r = view_read_either(view, reader, device, VIEW_LIVING, false);
	if (r == 0)
		view_remember(view, known);
	return r;
}

int view_read_totals(struct view *view, struct reader *reader, uint32_t device,
		     enum view_owner owner)
{
	struct idle_counters nothing = {0};

	return owner == VIEW_LIVING ? view_read_totals_since(view, reader, device, &nothing)
				    : view_read_either(view, reader, device, owner, false);
}

void view_deinit(struct view *view)
{
	for (uint32_t i = 0; i < BOOK_SEGMENTS_MAX; i++)
		free(view->segments[i].records);
	*view = VIEW_NULL;
}
