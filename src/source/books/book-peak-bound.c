/* SPDX-License-Identifier: Apache-2.0 */

/* A lower bound of a peak that the log does not reach: by the stamps of records and graves. */

#include <stdlib.h>

#include "book/format/event.h"
#include "source/books/book-peak.h"

/* Remembers a thread; true once there are two. 0 is none. */
static bool book_peak_second_thread(uint32_t thread, uint32_t *first)
{
	if (*first == 0)
		*first = thread;
	return thread != 0 && thread != *first;
}

/* Whether more than one thread writes, as far as can be seen. */
static bool book_peaks_many_threads(const struct book_peaks *peaks, const struct view *view)
{
	const struct book_graves *graves = &peaks->graves;
	struct view_iterator it = {0};
	uint32_t first = 0;

	for (size_t i = 0; i < peaks->events; i++) {
		if (book_peak_second_thread(book_thread(peaks->log.events[i].record.thread_space),
					    &first))
			return true;
	}
	for (uint64_t i = graves->first; i < graves->count; i++) {
		if (book_peak_second_thread(book_thread(graves->list[i].birth_thread_space),
					    &first) ||
		    book_peak_second_thread(graves->list[i].death_thread, &first))
			return true;
	}
	while (view_next(view, &it)) {
		if (book_peak_second_thread(book_thread(it.record->thread_space), &first))
			return true;
	}
	return false;
}

/* For a peak that the log does not reach. */
struct book_peak_bound {
	struct book_peaks *peaks;
	struct book_peak *peak;
	uint32_t type;
	uint64_t before, after; /* stamps: certainly before the peak, certainly after it */
	bool takes_equal;       /* the one with the stamp of the peak is the one that made it */
};

static bool book_peak_was_born(const struct book_peak_bound *bound, uint64_t birth)
{
	return birth < bound->before || (bound->takes_equal && birth == bound->peak->time);
}

static bool book_peak_has(const struct book_peak_bound *bound, size_t sorted,
			  const struct book_record *record)
{
	const struct book_record *records = bound->peaks->records + bound->peak->first;

	return sorted > 0 &&
	       bsearch(record, records, sorted, sizeof(*records), book_peak_compare) != NULL;
}

static int book_peak_take_graves(const struct book_peak_bound *bound)
{
	const struct book_graves *graves = &bound->peaks->graves;
	size_t sorted = bound->peak->count;
	int r = 0;

	if (sorted > 1)
		qsort(bound->peaks->records + bound->peak->first, sorted,
		      sizeof(struct book_record), book_peak_compare);
	for (uint64_t i = graves->first; r == 0 && i < graves->count; i++) {
		const struct book_grave *grave = &graves->list[i];
		struct book_record record = {
			.address = grave->address,
			.size = grave->size,
			.birth = grave->birth,
			.stack = grave->birth_stack,
			.name = grave->name,
			.phase = grave->phase,
			.thread_space = grave->birth_thread_space,
			.meta = grave->meta,
		};

		if (book_meta_type(grave->meta) != bound->type || event_bytes(&record) == 0 ||
		    grave->death <= bound->after || !book_peak_was_born(bound, grave->birth) ||
		    book_peak_has(bound, sorted, &record))
			continue;
		r = book_peaks_keep(bound->peaks, bound->peak, &record);
	}
	return r;
}

/* Where several have the peak's stamp, nobody can say which of them made it. */
static void book_peak_drop_equal(const struct book_peak_bound *bound)
{
	struct book_record *records = bound->peaks->records + bound->peak->first;
	size_t equal = 0, kept = 0;

	for (size_t i = 0; i < bound->peak->count; i++)
		equal += records[i].birth == bound->peak->time;
	if (equal <= 1)
		return;
	for (size_t i = 0; i < bound->peak->count; i++) {
		if (records[i].birth != bound->peak->time)
			records[kept++] = records[i];
	}
	bound->peaks->count -= bound->peak->count - kept;
	bound->peak->count = kept;
}

/* @view is in the oldest state in reach. */
static int book_peak_bound(const struct book_peak_bound *bound, const struct view *view)
{
	struct view_iterator it = {0};
	int r = 0;

	bound->peak->first = bound->peaks->count;
	while (r == 0 && view_next(view, &it)) {
		if (book_meta_type(it.record->meta) == bound->type && event_bytes(it.record) > 0 &&
		    book_peak_was_born(bound, it.record->birth))
			r = book_peaks_keep(bound->peaks, bound->peak, it.record);
	}
	if (r == 0)
		r = book_peak_take_graves(bound);
	if (r < 0)
		return r;
	book_peak_drop_equal(bound);
	book_peaks_add_up(bound->peaks, bound->peak);
	return 0;
}

/*
 * On x86 and by CLOCK_MONOTONIC no two events have the same stamp, unless the owner has stopped its clock: then
 * all later events have it.
 */
static bool book_peak_is_stamp_unique(const struct book_peaks *peaks, uint64_t stamp,
				      const struct reader *reader)
{
	return reader->header.clock != BOOK_CLOCK_CNTVCT && peaks->events > 0 &&
	       peaks->log.events[0].time > stamp;
}

int book_peaks_bound(struct book_peaks *peaks, const struct view *view, struct reader *reader,
		     const struct book_peak_wish *wish, uint32_t types)
{
	uint64_t doubt = 0;
	struct book_shard page;
	int r = file_read(reader->file, book_shard_offset(wish->device), &page, sizeof(page));

	if (r == 0)
		r = book_graves_read(reader, &page, wish->device, &peaks->graves);
	if (r == 0 && book_peaks_many_threads(peaks, view))
		doubt = wish->doubt;
	for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
		struct book_peak *peak = &peaks->types[type];
		const struct book_peak_bound bound = {
			.peaks = peaks,
			.peak = peak,
			.type = type,
			.before = peak->time > doubt ? peak->time - doubt : 0,
			.after = peak->time < UINT64_MAX - doubt ? peak->time + doubt : UINT64_MAX,
			.takes_equal = book_peak_is_stamp_unique(peaks, peak->time, reader),
		};

		if (types >> type & 1 && !peak->is_found)
			r = book_peak_bound(&bound, view);
	}
	return r;
}
