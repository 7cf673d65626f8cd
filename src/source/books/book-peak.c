/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Running a shard's log backwards. book-peak-bound.c has what is known where it does not reach far enough,
 * book-peak-rows.c puts the result into a snapshot.
 */

#include "source/books/book-peak.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "book/format/event.h"

/* How often the log and the records of a busy owner are read together. */
#define BOOK_PEAK_TRIES 3

static uint32_t book_peak_op(const struct book_event *event)
{
	return event->op_slot & BOOK_OP_MASK;
}

/* The event with that number; it must be one of those that count. */
static const struct book_event *book_peaks_event(const struct book_peaks *peaks, uint64_t number)
{
	return &peaks->log.events[number - peaks->log.first];
}

/* The number of the oldest event that counts. */
static uint64_t book_peaks_oldest(const struct book_peaks *peaks)
{
	return peaks->number + 1 - peaks->events;
}

/*
 * The view, and the log up to it. The log is read first: while the records are copied its oldest
 * events may be overwritten, but then they are here already.
 */
static int book_peaks_read_both(struct book_peaks *peaks, struct view *view, struct reader *reader,
				const struct book_peak_wish *wish, const struct book_shard *page)
{
	struct log *log = &peaks->log;
	int r, before;

	for (int i = 0; i < BOOK_PEAK_TRIES; i++) {
		before = book_log_read(reader, page, wish->device, log);
		r = view_read(view, reader, wish->device, wish->owner);
		if (r < 0 || before == -ENOMEM)
			return r < 0 ? r : before;
		if (before == 0)
			before = log_drain(log, reader);
		if (before == 0 || !view->rows_exact)
			return 0;
	}
	/* Too fast: whatever of it is still there. */
	before = book_log_read(reader, page, wish->device, log);
	if (before < 0)
		log->count = 0;
	return before == -ENOMEM ? before : 0;
}

/* Which events of the log came before the view's moment. */
static void book_peaks_cut_log(struct book_peaks *peaks, const struct view *view)
{
	const struct log *log = &peaks->log;

	peaks->number = view->number;
	peaks->events = 0;
	if (log->count > 0 && log->first <= view->number && view->number - log->first < log->count)
		peaks->events = view->number - log->first + 1;
}

int book_peaks_keep(struct book_peaks *peaks, struct book_peak *peak,
		    const struct book_record *record)
{
	struct book_record *records =
		array_grow(peaks->records, &peaks->capacity, peaks->count + 1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	peaks->records = records;
	records[peaks->count++] = *record;
	peak->count++;
	return 0;
}

int book_peak_compare(const void *left, const void *right)
{
	const struct book_record *a = left, *b = right;
	uint32_t spaces[] = {book_space(a->thread_space), book_space(b->thread_space)};

	if (a->birth != b->birth)
		return bits_compare(a->birth, b->birth);
	if (a->address != b->address)
		return bits_compare(a->address, b->address);
	return bits_compare(spaces[0], spaces[1]);
}

void book_peaks_add_up(struct book_peaks *peaks, struct book_peak *peak)
{
	struct book_record *records = peaks->records + peak->first;
	size_t kept = 0;

	if (!peak->is_found && peak->count > 1)
		qsort(records, peak->count, sizeof(*records), book_peak_compare);
	while (kept < peak->count && event_bytes(&records[kept]) <= peak->bytes - peak->known)
		peak->known += event_bytes(&records[kept++]);
	peak->exact = kept == peak->count && peak->known == peak->bytes;
	peaks->count -= peak->count - kept;
	peak->count = kept;
}

/* The records of a type, in the state that the view has been taken back to. */
static int book_peaks_take(struct book_peaks *peaks, uint32_t type, const struct view *view)
{
	struct book_peak *peak = &peaks->types[type];
	struct view_iterator it = {0};
	int r = 0;

	peak->first = peaks->count;
	while (r == 0 && view_next(view, &it)) {
		if (book_meta_type(it.record->meta) == type && event_bytes(it.record) > 0)
			r = book_peaks_keep(peaks, peak, it.record);
	}
	if (r < 0)
		return r;
	book_peaks_add_up(peaks, peak);
	/* Nothing of it is younger than the peak: it is the peak itself, still live. */
	for (size_t i = 0; peak->exact && i < peak->count; i++) {
		if (peaks->records[peak->first + i].birth > peak->time)
			return 0;
	}
	peak->moment = peak->exact ? peak->time : peak->moment;
	return 0;
}

/* Takes the counter of live bytes back over an event. */
static void book_peak_uncount(const struct book_event *event, uint64_t *bytes)
{
	if (book_peak_op(event) == BOOK_OP_ALLOC)
		*bytes -= event_bytes(&event->record);
	else if (book_peak_op(event) == BOOK_OP_FREE)
		*bytes += event_bytes(&event->record);
}

/* Takes the records back over an event. */
static void book_peak_undo(struct view *view, const struct book_event *event)
{
	uint32_t slot = event->op_slot >> 8, refs = book_meta_refs(event->record.meta);
	uint32_t segment = slot / BOOK_SEGMENT_SLOTS, within = slot % BOOK_SEGMENT_SLOTS;
	struct book_record *record;

	if (!event_has_slot(event->op_slot & 0xff) || segment >= view->segment_count ||
	    within >= view->segments[segment].count)
		return;
	record = &view->segments[segment].records[within];
	*record = event->record;
	switch (book_peak_op(event)) {
	case BOOK_OP_FREE:
		/* The event has the thread that freed it. */
		record->thread_space = book_other_thread(record->thread_space, 0);
		break;
	case BOOK_OP_REF:
		record->meta -= refs > 1 && refs < BOOK_META_REFS_MAX;
		break;
	case BOOK_OP_UNREF:
		record->meta += refs < BOOK_META_REFS_MAX;
		break;
	default:
		record->meta = 0;
		break;
	}
	if (book_meta_type(record->meta) >= BOOK_TYPES || book_meta_refs(record->meta) == 0)
		record->meta = 0;
}

/* What a buffer takes in a bank, of an allocator that gives one address in all; UINT64_MAX = not known. */
static uint64_t book_peaks_in_bank(struct book_peaks *peaks, struct reader *reader,
				   const struct book_record *record)
{
	struct book_peak_shape *known = &peaks->shapes[record->shape % BOOK_PEAK_SHAPES];

	if (!record->shape)
		return UINT64_MAX;
	if (known->id != record->shape) {
		struct book_shape shape = reader_shape(reader, record->shape);

		*known = (struct book_peak_shape){
			.id = record->shape,
			.is_known = shape.size_per_bank &&
				    shape.flags & (BOOK_SHAPE_INTERLEAVED | BOOK_SHAPE_SHARDED),
			.bytes = shape.size_per_bank};
	}
	return known->is_known ? known->bytes : UINT64_MAX;
}

/* What is live in each bank of one type, while the log is run backwards. */
struct book_peak_banks {
	bool is_known;
	bool has_space;
	uint32_t space;
	uint64_t now, most;
};

/* A buffer of it that is live in the present, or that an event tells of; @sign: whether it was live then. */
static void book_peaks_count_bank(struct book_peaks *peaks, struct reader *reader,
				  struct book_peak_banks *banks, const struct book_record *record,
				  int sign)
{
	uint32_t space = book_space(record->thread_space);
	uint64_t bytes;

	if (!banks->is_known || event_bytes(record) == 0)
		return;
	bytes = book_peaks_in_bank(peaks, reader, record);
	banks->is_known = bytes != UINT64_MAX && (!banks->has_space || banks->space == space) &&
			  (sign > 0 ? banks->now + bytes >= bytes : banks->now >= bytes);
	banks->has_space = true;
	banks->space = space;
	if (banks->is_known)
		banks->now = sign > 0 ? banks->now + bytes : banks->now - bytes;
	banks->most = bits_max(banks->most, banks->now);
}

/* Fills in the most that each bank held, as far back as the log reaches. */
static void book_peaks_find_banks(struct book_peaks *peaks, const struct view *view,
				  struct reader *reader, uint32_t types)
{
	struct book_peak_banks banks[BOOK_TYPES];
	struct view_iterator it = {0};
	uint64_t number;

	memset(peaks->shapes, 0, sizeof(peaks->shapes));
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		banks[type] = (struct book_peak_banks){.is_known = types >> type & 1};
	while (view_next(view, &it)) {
		uint32_t type = book_meta_type(it.record->meta);

		if (type < BOOK_TYPES)
			book_peaks_count_bank(peaks, reader, &banks[type], it.record, 1);
	}
	for (number = peaks->number; number >= book_peaks_oldest(peaks) && types; number--) {
		const struct book_event *event = book_peaks_event(peaks, number);
		uint32_t type = book_meta_type(event->record.meta), op = book_peak_op(event);

		if (type >= BOOK_TYPES || !(types >> type & 1))
			continue;
		if (op == BOOK_OP_ALLOC || op == BOOK_OP_FREE)
			book_peaks_count_bank(peaks, reader, &banks[type], &event->record,
					      op == BOOK_OP_FREE ? 1 : -1);
		if (op == BOOK_OP_PEAK_RESET) {
			types &= ~(1u << type);
			peaks->types[type].per_bank.is_all = true;
		}
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct snapshot_per_bank *per_bank = &peaks->types[type].per_bank;

		per_bank->is_known = banks[type].is_known && banks[type].has_space;
		per_bank->is_all |= number == 0;
		per_bank->bytes = per_bank->is_known ? banks[type].most : 0;
	}
}

static void book_peaks_found(struct book_peaks *peaks, uint32_t type, uint64_t number)
{
	struct book_peak *peak = &peaks->types[type];

	peak->is_found = true;
	peak->number = number;
	peak->moment = number >= book_peaks_oldest(peaks) ? book_peaks_event(peaks, number)->time
							  : peak->time;
	/* As much as then was still, or again, live before the oldest event. */
	if (number < book_peaks_oldest(peaks) && peaks->events > 0)
		peak->moment = book_peaks_event(peaks, number + 1)->time;
}

/*
 * Finds, for each type in @types, the oldest state in reach with as many bytes as the peak. If the peak
 * itself is in reach, that is it: before it there were fewer, since the last reset.
 */
static void book_peaks_find(struct book_peaks *peaks, const struct view *view, uint32_t types)
{
	uint64_t bytes[BOOK_TYPES];
	uint64_t number;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		bytes[type] = view->hot[type].bytes;
	for (number = peaks->number; number >= book_peaks_oldest(peaks) && types; number--) {
		const struct book_event *event = book_peaks_event(peaks, number);
		uint32_t type = book_meta_type(event->record.meta);

		if (type >= BOOK_TYPES || !(types >> type & 1))
			continue;
		if (bytes[type] == peaks->types[type].bytes)
			book_peaks_found(peaks, type, number);
		if (book_peak_op(event) == BOOK_OP_PEAK_RESET)
			types &= ~(1u << type);
		book_peak_uncount(event, &bytes[type]);
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (types >> type & 1 && bytes[type] == peaks->types[type].bytes)
			book_peaks_found(peaks, type, number);
	}
}

/* Takes the records of the states that were found. The view is then in the oldest state in reach. */
static int book_peaks_rewind(struct book_peaks *peaks, struct view *view, uint32_t types)
{
	uint64_t number = peaks->number;
	int r = 0;

	for (; r == 0; number--) {
		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			const struct book_peak *peak = &peaks->types[type];

			if (!(types >> type & 1) || !peak->is_found || peak->number != number)
				continue;
			types &= ~(1u << type);
			r = book_peaks_take(peaks, type, view);
		}
		if (number < book_peaks_oldest(peaks) || !types)
			break;
		book_peak_undo(view, book_peaks_event(peaks, number));
	}
	return r;
}

int book_peaks_read(struct book_peaks *peaks, struct view *view, struct reader *reader,
		    const struct book_peak_wish *wish)
{
	uint32_t types = 0, missing = 0;
	struct book_shard page;
	int r;

	peaks->count = 0;
	r = file_read(reader->file, book_shard_offset(wish->device), &page, sizeof(page));
	if (r == 0 && wish->slots_max && page.slots > wish->slots_max)
		r = view_read_totals(view, reader, wish->device, wish->owner);
	else if (r == 0)
		r = book_peaks_read_both(peaks, view, reader, wish, &page);
	if (r < 0)
		return r;
	book_peaks_cut_log(peaks, view);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *hot = &view->hot[type];

		peaks->types[type] = (struct book_peak){
			.bytes = hot->peak, .time = hot->peak_time, .moment = hot->peak_time};
		if (hot->peak > 0)
			types |= wish->types & 1u << type;
	}
	/* Without its records there is nothing to begin with. */
	if (!view->rows_exact)
		return 0;
	book_peaks_find(peaks, view, types);
	book_peaks_find_banks(peaks, view, reader, types);
	r = book_peaks_rewind(peaks, view, types);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (types >> type & 1 && !peaks->types[type].is_found)
			missing |= 1u << type;
	}
	return r < 0 || !missing ? r : book_peaks_bound(peaks, view, reader, wish, missing);
}

void book_peaks_deinit(struct book_peaks *peaks)
{
	free(peaks->records);
	log_deinit(&peaks->log);
	book_graves_deinit(&peaks->graves);
	*peaks = (struct book_peaks){0};
}

/* The newest event that the incident counts; 0 = there is none any more. */
static uint64_t book_peaks_find_failed(const struct book_peaks *peaks,
				       const struct book_incident *failed)
{
	for (uint64_t n = peaks->number; n >= book_peaks_oldest(peaks) && n > 0; n--) {
		const struct book_event *event = book_peaks_event(peaks, n);

		if (book_peak_op(event) == BOOK_OP_FAILED && event->time >= failed->second.time &&
		    event->record.stack == failed->second.stack &&
		    book_meta_type(event->record.meta) == failed->type)
			return n;
	}
	return 0;
}

int book_peaks_rewind_failed(struct book_peaks *peaks, struct view *view, struct reader *reader,
			     const struct book_peak_wish *wish, const struct book_incident *failed,
			     struct book_event *ret_event)
{
	struct book_shard page;
	uint64_t at;
	int r = file_read(reader->file, book_shard_offset(wish->device), &page, sizeof(page));

	if (r == 0 && wish->slots_max && page.slots > wish->slots_max)
		return -ENOENT;
	if (r == 0)
		r = book_peaks_read_both(peaks, view, reader, wish, &page);
	if (r < 0)
		return r;
	book_peaks_cut_log(peaks, view);
	at = view->rows_exact ? book_peaks_find_failed(peaks, failed) : 0;
	if (at == 0)
		return -ENOENT;
	for (uint64_t number = peaks->number; number > at; number--)
		book_peak_undo(view, book_peaks_event(peaks, number));
	*ret_event = *book_peaks_event(peaks, at);
	return 0;
}
