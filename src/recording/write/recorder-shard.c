/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The events of a device: read in parts, written when there are enough of them or a second has
 * passed. Where the owner was faster, an exact state is taken, and the counters on both sides say
 * what is missing.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "model/timebase.h"
#include "recording/write/recorder-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define SHARD_QUIET_NS NS_PER_S /* after that events are written, however few */
#define SHARD_PARTS 4u          /* chunks in a round: others wait too */

/* Events of all devices that wait. Small rings can fill it, and rings can lie over each other. */
#define SHARD_WAITING (4u * RECORDING_EVENTS_MAX)

/* A small table would otherwise be written again with every few events. */
#define SHARD_KEYFRAME_MIN (UINT64_C(1) << 20)

#define SHARD_LARGE 262144u /* records of a table */

/* Trying to get an exact state takes no more than a quarter of the time. */
#define SHARD_RETRY_SHARE 4u

/* After so many rounds nothing is left of a ring, unless somebody still writes to it. */
#define SHARD_DEAD_ROUNDS (BOOK_RING_MAX / RECORDING_EVENTS_MAX + 2)

int recorder_shard_new(struct recorder_shard **ret_shard, struct recorder_book *book,
		       uint32_t device)
{
	struct reader *reader = &book->book->reader;
	struct recorder_shard *shard = calloc(1, sizeof(*shard));
	struct book_shard page;
	int r;

	if (!shard)
		return -ENOMEM;
	shard->device = device;
	shard->is_new = book->is_new || book->has_looked;
	r = file_read(reader->file, book_shard_offset(device), &page, sizeof(page));
	if (r == 0)
		r = log_find(reader, &page, device, &shard->place);
	shard->is_failed = r < 0;
	*ret_shard = shard;
	return 0;
}

struct recorder_shard *recorder_shard_free(struct recorder_shard *shard)
{
	if (!shard)
		return NULL;
	log_deinit(&shard->log);
	columns_table_deinit(&shard->table);
	recorder_sites_deinit(&shard->sites);
	free(shard);
	return NULL;
}

/* From here on it is not recorded: what its book says cannot be true, or cannot be read. */
static void shard_fail(struct recorder *recorder, struct recorder_shard *shard)
{
	shard->is_failed = true;
	recorder->sums.unreadable++;
	log_deinit(&shard->log);
}

static uint64_t shard_live(const struct recorder_shard *shard)
{
	uint64_t live = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		live += shard->counters.hot[type].buffers;
	return live;
}

static void shard_entry_now(const struct recorder_shard *shard, struct recording_entry *entry)
{
	entry->first = entry->last = shard->done;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		entry->bytes[type] = entry->high[type] = shard->counters.hot[type].bytes;
		entry->high_number[type] = shard->done;
	}
}

static int shard_sites(struct recorder *recorder, struct recorder_book *book,
		       struct recorder_shard *shard)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_SITES, shard->device);
	const struct chunk_part part = {shard->sites.sites,
					shard->sites.count * sizeof(*shard->sites.sites)};

	shard_entry_now(shard, &entry);
	entry.count = (uint32_t)shard->sites.count;
	return chunk_writer_add(recorder->writer, &entry, &part, part.length ? 1 : 0);
}

/* A keyframe of millions of buffers takes so long that a ring may be overrun meanwhile. */
static void shard_catch_up(struct recorder_book *book, struct recorder_shard *shard)
{
	uint64_t left;

	if (shard->table.count >= SHARD_LARGE)
		/* What goes wrong here is found again by the next poll. */
		(void)log_drain_part(&shard->log, &book->book->reader, UINT64_MAX, &left);
}

/* The state after event `done`. What it names is in the file already. */
static int shard_keyframe(struct recorder *recorder, struct recorder_book *book,
			  struct recorder_shard *shard)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_KEYFRAME, shard->device);
	uint64_t before = chunk_writer_size(recorder->writer);
	struct chunk_part parts[2];
	struct book_shard page;
	uint8_t *table;
	int r;

	r = file_read(book->book->reader.file, book_shard_offset(shard->device), &page,
		      sizeof(page));
	if (r < 0)
		return r;
	table = malloc(columns_table_bound(&shard->table));
	if (!table)
		return -ENOMEM;
	recorder_count_page(shard, &page);
	parts[0] = (struct chunk_part){&page, sizeof(page)};
	parts[1] = (struct chunk_part){table, (size_t)columns_encode_table(&shard->table, table)};
	shard_catch_up(book, shard);
	shard_entry_now(shard, &entry);
	entry.count = (uint32_t)shard_live(shard);
	r = chunk_writer_add(recorder->writer, &entry, parts, ARRAY_SIZE(parts));
	free(table);
	shard_catch_up(book, shard);
	if (r == -EMSGSIZE) {
		shard_fail(recorder, shard); /* without a keyframe its events would tell nothing */
		return 0;
	}
	if (r == 0)
		r = shard_sites(recorder, book, shard);
	shard->keyframe = chunk_writer_size(recorder->writer) - before;
	shard->since = 0;
	return r;
}

static double shard_ns_per_stamp(const struct recorder_book *book)
{
	struct timebase timebase;

	book_timebase(book->book, &timebase);
	if (timebase.stamp_now <= timebase.stamp_start)
		return 1;
	return (double)(timebase.now - timebase.start) /
	       (double)(timebase.stamp_now - timebase.stamp_start);
}

/* Brings counters and sites along, and fills in what the entry says about the events. */
static int shard_count(struct recorder_book *book, struct recorder_shard *shard,
		       const struct book_event *events, struct recording_entry *entry)
{
	struct recorder_counters *counters = &shard->counters;
	double ns_per_stamp = shard_ns_per_stamp(book);

	entry->stamp_first = UINT64_MAX;
	entry->stamp_last = 0;
	for (uint32_t i = 0; i < entry->count; i++) {
		uint32_t type = book_meta_type(events[i].record.meta);
		uint64_t number = entry->first + i;

		recorder_count(counters, &book->book->reader, &events[i], number);
		if (recorder_sites_count(&shard->sites, &events[i], ns_per_stamp) < 0)
			return -ENOMEM;
		entry->stamp_first = bits_min(entry->stamp_first, events[i].time);
		entry->stamp_last = bits_max(entry->stamp_last, events[i].time);
		for (uint32_t t = 0; i == 0 && t < BOOK_TYPES; t++) {
			entry->high[t] = counters->hot[t].bytes;
			entry->high_number[t] = number;
		}
		if (type < BOOK_TYPES && counters->hot[type].bytes > entry->high[type]) {
			entry->high[type] = counters->hot[type].bytes;
			entry->high_number[type] = number;
		}
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		entry->bytes[type] = counters->hot[type].bytes;
	return 0;
}

static int shard_write(struct recorder *recorder, struct recorder_book *book,
		       struct recorder_shard *shard, const struct book_event *events,
		       uint32_t count)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_EVENTS, shard->device);
	struct chunk_part part = {.bytes = recorder->encoded};
	int64_t length;
	int r;

	entry.count = count;
	entry.first = shard->done + 1;
	entry.last = shard->done + count;
	r = shard_count(book, shard, events, &entry);
	if (r < 0)
		return r;
	length = columns_encode(&shard->table, events, count, recorder->encoded);
	if (length == -EBADMSG) {
		shard_fail(recorder, shard);
		return 0;
	}
	if (length < 0)
		return (int)length;
	part.length = (size_t)length;
	r = chunk_writer_add(recorder->writer, &entry, &part, 1);
	if (r < 0)
		return r;
	shard->done += count;
	shard->since += chunk_writer_last(recorder->writer);
	recorder->sums.events += count;
	return 0;
}

/* So many events of a device may wait. */
static uint64_t shard_room(const struct recorder *recorder)
{
	return bits_min(RECORDING_EVENTS_MAX, SHARD_WAITING / bits_max(recorder->shards, 1));
}

int recorder_shard_flush(struct recorder *recorder, struct recorder_book *book,
			 struct recorder_shard *shard)
{
	struct log *log = &shard->log;
	int r = 0;

	if (shard->is_failed || log->count == 0)
		return 0;
	r = recorder_bytes_shard(recorder, book, shard->device);
	if (r == 0)
		r = recorder_bytes_sync(recorder, book);
	for (uint64_t at = 0; r == 0 && !shard->is_failed && at < log->count;) {
		uint32_t count = (uint32_t)bits_min(log->count - at, RECORDING_EVENTS_MAX);

		r = shard_write(recorder, book, shard, log->events + at, count);
		at += count;
	}
	if (r < 0 || shard->is_failed)
		return r;
	if (log->capacity > 2 * shard_room(recorder))
		log_deinit(log);
	log_start(log, &shard->place, shard->done + 1);
	if (shard->since >= bits_max(shard->keyframe, SHARD_KEYFRAME_MIN))
		r = shard_keyframe(recorder, book, shard);
	return r;
}

/* Both sides of a gap. */
struct shard_gap {
	uint64_t before_number, after_number;
	const struct book_hot *before, *after;
};

static int shard_gap(struct recorder *recorder, struct recorder_book *book, uint32_t device,
		     const struct shard_gap *sides)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_GAP, device);
	struct recording_gap gap = {.events = sides->after_number - sides->before_number};
	const struct chunk_part part = {&gap, sizeof(gap)};

	entry.first = sides->before_number + 1;
	entry.last = sides->after_number;
	entry.count = (uint32_t)bits_min(gap.events, UINT32_MAX);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *before = &sides->before[type];
		const struct book_hot *after = &sides->after[type];

		gap.allocs[type] = after->allocs - before->allocs;
		gap.frees[type] = after->frees - before->frees;
		gap.bytes[type] = (int64_t)(after->bytes - before->bytes);
		if (after->peak > before->peak) {
			gap.peak[type] = after->peak;
			gap.peak_stamp[type] = after->peak_time;
		}
		entry.bytes[type] = after->bytes;
		entry.high[type] = bits_max(bits_max(before->bytes, after->bytes), gap.peak[type]);
		if (entry.high[type] == after->bytes)
			entry.high_number[type] = sides->after_number;
	}
	recorder->sums.missed += gap.events;
	recorder->sums.gaps++;
	return chunk_writer_add(recorder->writer, &entry, &part, 1);
}

/* From `done` to an exact state. */
static int shard_gap_to(struct recorder *recorder, struct recorder_book *book,
			const struct recorder_shard *shard, const struct view *view)
{
	return shard_gap(recorder, book, shard->device,
			 &(struct shard_gap){
				 .before_number = shard->done,
				 .before = shard->counters.hot,
				 .after_number = view->number,
				 .after = view->hot,
			 });
}

/* From the device's first event to where its recording begins. */
static int shard_gap_first(struct recorder *recorder, struct recorder_book *book,
			   const struct recorder_shard *shard)
{
	static const struct book_hot nothing[BOOK_TYPES];

	return shard_gap(recorder, book, shard->device,
			 &(struct shard_gap){
				 .before = nothing,
				 .after_number = shard->done,
				 .after = shard->counters.hot,
			 });
}

/* Tries to go on from an exact state. */
static int shard_resync(struct recorder *recorder, struct recorder_book *book,
			struct recorder_shard *shard)
{
	struct view *view = &recorder->view;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), now;
	int r = recorder_shard_flush(recorder, book, shard);

	if (r < 0 || shard->is_failed)
		return r;
	r = view_read(view, &book->book->reader, shard->device,
		      book->book->alive ? VIEW_LIVING : VIEW_DEAD);
	now = clock_ns(CLOCK_MONOTONIC);
	shard->is_lost = r == -EAGAIN || (r == 0 && !view->rows_exact);
	shard->retry_ns = now + (now - start) * SHARD_RETRY_SHARE;
	if (shard->is_lost || r == -ENOMEM)
		return r == -ENOMEM ? r : 0;
	if (r < 0 || view->number < shard->done) {
		shard_fail(recorder, shard);
		return 0;
	}
	if (view->number == shard->done)
		return 0;
	r = recorder_bytes_shard(recorder, book, shard->device);
	if (r == 0)
		r = recorder_bytes_sync(recorder, book);
	if (r == 0)
		r = shard_gap_to(recorder, book, shard, view);
	if (r == 0)
		r = recorder_past_take_view(shard, view);
	if (r == 0)
		r = recorder_sites_rebase(&shard->sites, &shard->table);
	if (r < 0)
		return r;
	log_start(&shard->log, &shard->place, shard->done + 1);
	return shard_keyframe(recorder, book, shard);
}

/* 0: it cannot begin yet. */
static int shard_begin(struct recorder *recorder, struct recorder_book *book,
		       struct recorder_shard *shard)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), now;
	int r;

	if (start < shard->retry_ns)
		return 0;
	r = recorder_past_begin(recorder, book, shard);
	now = clock_ns(CLOCK_MONOTONIC);
	shard->retry_ns = now + (now - start) * SHARD_RETRY_SHARE;
	if (r == -EAGAIN)
		return 0;
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		shard_fail(recorder, shard);
		return 0;
	}
	r = recorder_sites_rebase(&shard->sites, &shard->table);
	if (r == 0)
		r = recorder_bytes_shard(recorder, book, shard->device);
	if (r == 0)
		r = recorder_bytes_sync(recorder, book);
	if (r == 0 && shard->is_new && shard->done > 0)
		r = shard_gap_first(recorder, book, shard);
	if (r == 0)
		r = shard_keyframe(recorder, book, shard);
	shard->has_begun = true;
	shard->oldest_ns = start;
	if (r == 0 && shard->log.count >= shard_room(recorder))
		r = recorder_shard_flush(recorder, book, shard);
	return r < 0 ? r : 1;
}

/* One part of what is new. 1 = there may be more. */
static int shard_read(struct recorder *recorder, struct recorder_book *book,
		      struct recorder_shard *shard, uint64_t *ret_left)
{
	struct log *log = &shard->log;
	uint64_t before = log->count;
	int r = recorder_past_is_solid(shard, &book->book->reader);

	if (r == 0)
		r = log_drain_part(log, &book->book->reader, RECORDING_EVENTS_MAX, ret_left);

	if (r == -EOVERFLOW) {
		r = shard_resync(recorder, book, shard);
		return r < 0 ? r : 1;
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		shard_fail(recorder, shard);
		return 0;
	}
	if (before == 0 && log->count > 0)
		shard->oldest_ns = clock_ns(CLOCK_MONOTONIC);
	if (log->count >= shard_room(recorder))
		r = recorder_shard_flush(recorder, book, shard);
	return r < 0 ? r : log->count > before || r == 1 || before >= shard_room(recorder);
}

int recorder_shard_poll(struct recorder *recorder, struct recorder_book *book,
			struct recorder_shard *shard)
{
	uint64_t left = 0;
	int r = 1, is_new = 0;

	if (shard->is_failed)
		return 0;
	if (!shard->has_begun)
		return shard_begin(recorder, book, shard);
	if (shard->is_lost) {
		if (clock_ns(CLOCK_MONOTONIC) < shard->retry_ns)
			return 0;
		r = shard_resync(recorder, book, shard);
		return r < 0 ? r : 1;
	}
	for (uint32_t part = 0; part < SHARD_PARTS && r > 0; part++) {
		uint64_t next = shard->log.first + shard->log.count;

		r = shard_read(recorder, book, shard, &left);
		is_new |= r > 0 || shard->log.first + shard->log.count > next;
		if (left == 0)
			break;
	}
	recorder->sums.waiting += left;
	if (r >= 0 && shard->log.count > 0 &&
	    clock_ns(CLOCK_MONOTONIC) - shard->oldest_ns >= SHARD_QUIET_NS)
		r = recorder_shard_flush(recorder, book, shard);
	return r < 0 ? r : is_new;
}

/* What no exact state could be had of: the counters at least. */
static int shard_end_lost(struct recorder *recorder, struct recorder_book *book,
			  struct recorder_shard *shard)
{
	struct view *view = &recorder->view;
	int r = view_read_totals(view, &book->book->reader, shard->device, VIEW_LIVING);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || view->number <= shard->done)
		return 0;
	return shard_gap_to(recorder, book, shard, view);
}

int recorder_shard_end(struct recorder *recorder, struct recorder_book *book,
		       struct recorder_shard *shard)
{
	uint32_t rounds = book->book->alive ? 1 : SHARD_DEAD_ROUNDS;
	int r;

	shard->retry_ns = 0;
	/* Of the dead until nothing is left; of the living one part, as they may go on for ever. */
	do {
		r = recorder_shard_poll(recorder, book, shard);
	} while (r > 0 && --rounds > 0);
	if (r >= 0)
		r = recorder_shard_flush(recorder, book, shard);
	if (r < 0 || shard->is_failed || !shard->has_begun)
		return r;
	if (shard->is_lost)
		return shard_end_lost(recorder, book, shard);
	return shard->since > 0 ? shard_keyframe(recorder, book, shard) : 0;
}
