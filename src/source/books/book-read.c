/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads one book into the snapshot. A book has a deadline: its owner may be hostile, and a reader
 * of everybody's books must not be held up by one of them. What is not read in time makes the
 * process inexact, and a note says so.
 */

#include "source/books/book-source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "book/read/view.h"
#include "model/snapshot-request.h"
#include "source/books/book-peak.h"
#include "source/books/book-private.h"
#include "source/books/book-rest.h"
#include "source/books/scan.h"

/* A book of 1000 devices is read in 20 ms, one of 16M buffers in a second or two. */
#define BOOK_TOTALS_NS 1000000000u
#define BOOK_BUFFERS_NS UINT64_C(10000000000)

/*
 * For a page: 1.5 MiB, so that it costs little. For the first few rows of all: 262,144 buffers, 12
 * MiB.
 */
#define BOOK_PAGE_SEGMENTS 1u
#define BOOK_SORTED_SEGMENTS 8u

void book_reading_deinit(struct book_reading *reading)
{
	free(reading->caches);
	reading->caches = NULL;
	free(reading->stacks);
	reading->stacks = NULL;
	if (reading->peaks)
		book_peaks_deinit(reading->peaks);
	free(reading->peaks);
	reading->peaks = NULL;
}

struct book_caches *book_caches(struct book_reading *reading)
{
	if (!reading->caches)
		reading->caches = calloc(1, sizeof(*reading->caches));
	return reading->caches;
}

/* Cached because texts repeat: most buffers of a process have one of a few names. */
const char *book_text(struct book_reading *reading, uint32_t id)
{
	struct book_caches *caches = id ? book_caches(reading) : NULL;
	uint32_t place = id % BOOK_TEXTS;
	const char *bytes, *text;
	size_t length;

	if (id == 0)
		return NULL;
	if (caches && caches->texts[place].id == id)
		return caches->texts[place].text;
	bytes = reader_string(&reading->book->reader, id, &length);
	if (!bytes)
		return NULL;
	text = snapshot_text(reading->snapshot, bytes, length);
	if (caches) {
		caches->texts[place].id = id;
		caches->texts[place].text = text;
	}
	return text;
}

int book_module(struct book_reading *reading, uint32_t id, struct book_module *ret_module)
{
	struct book_caches *caches = id ? book_caches(reading) : NULL;
	uint32_t place = id % BOOK_MODULES;
	int r;

	if (caches && caches->modules[place].id == id) {
		*ret_module = caches->modules[place].module;
		return 0;
	}
	r = reader_module(&reading->book->reader, id, ret_module);
	if (r == 0 && caches) {
		caches->modules[place].id = id;
		caches->modules[place].module = *ret_module;
	}
	return r;
}

uint32_t book_bound(uint64_t inexact, uint32_t type)
{
	if (inexact & BOOK_INEXACT_LOW << type)
		return SNAPSHOT_AT_LEAST;
	return inexact & BOOK_INEXACT_HIGH << type ? SNAPSHOT_AT_MOST : SNAPSHOT_EXACT;
}

static int book_collect_counters(struct book_reading *reading)
{
	const struct view *view = reading->view;
	struct snapshot_process *process = book_process(reading);
	struct snapshot_part *part =
		snapshot_part(reading->snapshot, reading->process, view->device);

	if (!part)
		return -ENOMEM;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *hot = &view->hot[type];
		const struct book_cold *cold = &view->cold[type];
		const struct book_warm *warm = &view->warm[type];
		struct snapshot_memory memory = {
			.used = hot->bytes,
			.buffers = hot->buffers,
			.occupied = {.bytes = warm->occupied, .known = warm->known},
			.peak = hot->peak,
			.allocs = hot->allocs,
			.frees = hot->frees,
			.unknown_frees = cold->unknown_frees,
			.double_frees = cold->double_frees,
			.size_changes = cold->size_changes,
			.realloc_live = cold->realloc_live,
			.ambiguous_frees = cold->ambiguous_frees,
			.unplaced_frees = warm->unplaced_frees,
			.hooked = cold->hooked,
			.overflow_frees = cold->overflow_frees,
			.last_ns = timebase_ns(&reading->timebase, hot->last),
			.bound = book_bound(view->inexact, type),
		};

		snapshot_add_memory(&part->memory[type], &memory);
		process->last_ns = bits_max(process->last_ns, memory.last_ns);
		if (memory.bound != SNAPSHOT_EXACT)
			process->exact = false;
	}
	return 0;
}

/* Whether there is time for one more device. If not, a note says so. */
static bool book_has_time(struct book_reading *reading, uint32_t device)
{
	const struct snapshot_request *request = reading->request;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool goes_on;

	if (now <= reading->deadline)
		return true;
	/*
	 * The total of what an exited process left must be right, even if not all of it can be
	 * listed. A page goes on where the last one ended.
	 */
	goes_on = !reading->is_late && request->buffers && (!request->limit || request->sorted);
	if (goes_on) {
		reading->is_late = true;
		reading->deadline = now + BOOK_TOTALS_NS;
		reading->snapshot->exact = false;
	} else {
		book_process(reading)->exact = false;
	}
	snapshot_note(reading->snapshot,
		      "pid %" PRIu32 ": takes too long to read; %s device %" PRIu32
		      " and later ones%s",
		      reading->book->owner.id.pid, goes_on ? "of" : "without", device,
		      goes_on ? " totals only" : "");
	return goes_on;
}

bool book_wants_rows(const struct book_reading *reading, uint32_t device)
{
	const struct filter *filter = &reading->request->filter;
	const struct snapshot_part *part =
		snapshot_find_part(reading->snapshot, reading->process, device);

	return reading->request->buffers && !reading->is_late &&
	       filter_wants_pid(filter, reading->book->owner.id.pid) &&
	       snapshot_request_wants(reading->request,
				      &reading->snapshot->processes[reading->process], device,
				      part ? part->facts.unique_id : 0);
}

/* Notes why reading a shard failed. Returns 0 or -ENOMEM. */
static int book_note_shard(struct book_reading *reading, uint32_t device, int result)
{
	struct snapshot_process *process = book_process(reading);

	if (result == -ENOMEM)
		return result;
	process->exact = false;
	snapshot_note(reading->snapshot, "pid %" PRIu32 ", device %" PRIu32 ": cannot be read: %s",
		      process->id.pid, device,
		      result == -EBADMSG ? "its book contradicts itself" : reader_strerror(result));
	return 0;
}

/* Adds the rows of a view, if it has them. */
static int book_collect_view(struct book_reading *reading)
{
	const struct view *view = reading->view;
	struct snapshot_process *process = book_process(reading);

	if (reading->peaks)
		return book_peaks_rows(reading);
	if (!view->rows_exact) {
		reading->snapshot->exact = false;
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": writes faster than its buffers can be read; totals only",
			      process->id.pid, view->device);
		return 0;
	}
	if (!view->adds_up) {
		process->exact = false;
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": buffers and counters do not agree",
			      process->id.pid, view->device);
	}
	return book_rows(reading);
}

/* Reads the counters of a live owner, starting from their last known values. */
static int book_read_totals(struct book_reading *reading, uint32_t device)
{
	struct totals_cache *totals_cache = &reading->book->totals_cache;
	struct idle_counters nothing = {0};
	struct idle_counters *known =
		reading->recalls ? &totals_cache->shards[reading->recalled].known : &nothing;
	int r = view_read_totals_since(reading->view, &reading->book->reader, device, known);

	if (r == 0 && reading->learns)
		totals_cache_add_shard(totals_cache, device, known);
	return r;
}

/* All rows of a shard, or none. */
static int book_collect_shard(struct book_reading *reading, uint32_t device)
{
	enum view_owner owner = scan_book_owner(reading->book);
	struct reader *reader = &reading->book->reader;
	bool rows = book_wants_rows(reading, device);
	int r;

	if (rows && reading->request->at_peak)
		r = book_peaks_read_shard(reading, device);
	else if (rows)
		r = view_read(reading->view, reader, device, owner);
	else if (owner == VIEW_LIVING)
		r = book_read_totals(reading, device);
	else
		r = view_read_totals(reading->view, reader, device, owner);
	if (r == -ENOENT && reading->rest)
		return 0; /* declared, and not used so far */
	if (r < 0) {
		reading->learns = false;
		return book_note_shard(reading, device, r);
	}
	if (reading->fills)
		book_rest_add_head(reading->fills, reading->view);
	r = book_collect_counters(reading);
	return r < 0 || !rows ? r : book_collect_view(reading);
}

/* The same in parts, until there are as many rows as wanted. */
static int book_collect_parts(struct book_reading *reading, uint32_t device)
{
	enum view_owner owner = scan_book_owner(reading->book);
	uint32_t count = reading->request->sorted ? BOOK_SORTED_SEGMENTS : BOOK_PAGE_SEGMENTS;
	uint32_t from = book_rows_first(reading, device) / BOOK_SEGMENT_SLOTS;
	struct view *view = reading->view;
	int r;

	if (!book_wants_rows(reading, device))
		return 0;
	for (uint32_t segment = from; !book_rows_done(reading); segment += count) {
		r = view_read_part(view, &reading->book->reader, device, owner, segment, count);
		if (r < 0)
			return book_note_shard(reading, device, r);
		r = segment == from ? book_collect_counters(reading) : 0;
		if (r == 0)
			r = book_collect_view(reading);
		if (r < 0 || segment + count >= view->segment_count)
			return r;
		if (clock_ns(CLOCK_MONOTONIC) > reading->deadline) {
			book_rows_late(reading, (segment + count) * BOOK_SEGMENT_SLOTS - 1);
			return 0;
		}
	}
	return 0;
}

/* The first shard at or after @device; each call continues from the last. -ENXIO: no more. */
static int64_t book_next_shard(struct book_reading *reading, uint32_t device)
{
	const struct totals_cache *totals_cache = &reading->book->totals_cache;

	if (!reading->recalls && reading->rest) {
		device = book_rest_next_single(reading->rest, device);
		return device < BOOK_DEVICES ? (int64_t)device : -ENXIO;
	}
	if (!reading->recalls)
		return reader_next_shard(&reading->book->reader, device);
	while (reading->recalled < totals_cache->shard_count &&
	       totals_cache->shards[reading->recalled].device < device)
		reading->recalled++;
	if (reading->recalled == totals_cache->shard_count)
		return -ENXIO;
	return totals_cache->shards[reading->recalled].device;
}

static int book_collect_shards(struct book_reading *reading)
{
	int64_t device = book_next_shard(reading, book_rows_first_device(reading));

	while (device >= 0 && !book_rows_done(reading)) {
		int r;

		if (!book_has_time(reading, (uint32_t)device))
			return 0;
		r = reading->request->limit && !reading->is_late
			    ? book_collect_parts(reading, (uint32_t)device)
			    : book_collect_shard(reading, (uint32_t)device);
		if (r < 0)
			return r;
		device = book_next_shard(reading, (uint32_t)device + 1);
	}
	if (device == -ENXIO && reading->learns)
		totals_cache_complete(&reading->book->totals_cache,
				      reading->book->reader.header.changes);
	return device >= 0 || device == -ENXIO ? 0 : (int)device;
}

/* Whatever the book says, there may be more. */
static void book_note_gave_up(struct book_reading *reading)
{
	struct snapshot_process *process = book_process(reading);
	uint32_t id = reading->book->reader.header.gave_up;
	const char *reason = book_text(reading, id);

	if (!id)
		return;
	process->exact = false;
	if (reading->request->buffers && !process->phase)
		process->phase = book_text(reading, reading->book->reader.header.first_phase);
	process->gave_up = reason ? reason : "the reason is not known";
	snapshot_note(reading->snapshot, "pid %" PRIu32 " (%s): tracking gave up: %s",
		      process->id.pid, process->comm, process->gave_up);
}

/* Notes what a person should know about the book as a whole. */
static void book_note(struct book_reading *reading)
{
	const struct book_header *header = &reading->book->reader.header;
	struct snapshot_process *process = book_process(reading);
	uint64_t bytes = 0, buffers = 0;
	char size[TEXT_NUMBER_SIZE], held[48] = "";

	if (header->rejected.paused) {
		process->exact = false;
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ": %" PRIu64 " event%s went unrecorded while paused",
			      process->id.pid, header->rejected.paused,
			      header->rejected.paused == 1 ? "" : "s");
	}
	if (header->lost_stacks && reading->request->namer)
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ": %" PRIu64 " event%s no stack, see docs/stacks.md",
			      process->id.pid, header->lost_stacks,
			      header->lost_stacks == 1 ? " has" : "s have");
	if (header->lost_frames && reading->request->namer)
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ": %" PRIu64
			      " events have no Python frames, see docs/stacks.md",
			      process->id.pid, header->lost_frames);
	/* Peaks of a recording are read from several states of it, of which none is the last. */
	if (process->alive || (reading->book->recorded && reading->request->at_peak))
		return;
	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			bytes += process->parts[i].memory[type].used;
			buffers += process->parts[i].memory[type].buffers;
		}
	}
	if (reading->book->recorded && buffers == 0)
		return; /* a run that has ended in order */
	if (!reading->book->recorded)
		snprintf(held, sizeof(held), "; its book is held by pid %" PRIu32,
			 reading->book->holder);
	snapshot_note(reading->snapshot,
		      "pid %" PRIu32 " (%s) has ended and left %" PRIu64 " buffer%s, %s%s",
		      process->id.pid, process->comm, buffers, buffers == 1 ? "" : "s",
		      text_size(bytes, size), held);
}

/* Only counters of a live owner are cached, and only those of whole books. */
static void book_recall(struct book_reading *reading)
{
	struct scan_book *book = reading->book;
	bool is_narrow = reading->rest, lives = scan_book_owner(book) == VIEW_LIVING;

	reading->recalls = lives && totals_cache_is_current(&book->totals_cache,
							    book->reader.header.changes, is_narrow);
	reading->learns = lives && !reading->recalls && !reading->request->buffers;
	if (reading->learns)
		totals_cache_restart(&book->totals_cache, is_narrow);
}

/* What the book says about its devices. */
static int book_collect_contents(struct book_reading *reading)
{
	int r;

	book_timebase(reading->book, &reading->timebase);
	book_recall(reading);
	r = book_devices(reading);
	if (r == 0)
		r = book_collect_shards(reading);
	if (r == 0 && reading->rest)
		r = book_rest_collect(reading);
	if (r == 0 && reading->request->incidents)
		r = book_collect_incidents(reading);
	if (r == 0 && reading->request->closed)
		r = book_collect_held(reading, true);
	if (r == 0)
		book_note(reading);
	return r;
}

/* The process is listed whether or not its book can be read. */
static int book_collect_all(struct book_reading *reading)
{
	struct scan_book *book = reading->book;
	int refreshed, r;

	reading->deadline = clock_ns(CLOCK_MONOTONIC) +
			    (reading->request->buffers ? BOOK_BUFFERS_NS : BOOK_TOTALS_NS);
	refreshed = reader_refresh(&book->reader);
	r = book_add_process(book, reading->snapshot, &reading->process);
	if (r < 0)
		return r;
	if (refreshed == 0)
		book_note_gave_up(reading);
	r = refreshed == 0 ? book_collect_contents(reading) : refreshed;
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		book_process(reading)->exact = false;
		snapshot_note(reading->snapshot, "pid %" PRIu32 ": its book cannot be read: %s",
			      book->owner.id.pid, reader_strerror(r));
	}
	return 0;
}

int book_collect(struct scan_book *book, const struct snapshot_request *request, struct view *view,
		 struct snapshot *snapshot)
{
	CLEANUP(book_reading_deinit)
	struct book_reading reading = {
		.book = book,
		.request = request,
		.view = view,
		.snapshot = snapshot,
		.rest = book->alive && !request->buffers ? book->rest : NULL,
	};

	return book_rows_touch(&reading) ? book_collect_all(&reading) : 0;
}

int book_collect_whole(struct scan_book *book, struct view *view, struct snapshot *snapshot,
		       struct book_rest *rest)
{
	static const struct snapshot_request totals = {0};
	CLEANUP(book_reading_deinit)
	struct book_reading reading = {
		.book = book,
		.request = &totals,
		.view = view,
		.snapshot = snapshot,
		.fills = rest,
	};

	return book_collect_all(&reading);
}
