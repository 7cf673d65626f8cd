/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks of a shard and what was live at them, as parts of a snapshot. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/types.h"
#include "source/books/book-kept.h"
#include "source/books/book-peak.h"
#include "source/books/book-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

/*
 * A thread takes its stamp and may then wait for the lock, or for a processor. Hardly any waits so long,
 * and one that does is wrong about a few buffers.
 */
#define BOOK_PEAK_DOUBT_NS (NS_PER_S / 10)

uint64_t book_peak_doubt(const struct timebase *timebase)
{
	uint64_t length = timebase->now - timebase->start;
	unsigned __int128 stamps;

	if (length == 0 || timebase->stamp_now <= timebase->stamp_start)
		return UINT64_MAX;
	stamps = (unsigned __int128)(timebase->stamp_now - timebase->stamp_start) *
		 BOOK_PEAK_DOUBT_NS / length;
	return stamps < UINT64_MAX ? (uint64_t)stamps : UINT64_MAX;
}

int book_peaks_read_shard(struct book_reading *reading, uint32_t device)
{
	const struct filter *filter = &reading->request->filter;
	struct book_peak_wish wish = {
		.device = device,
		.owner = scan_book_owner(reading->book),
		.slots_max = reading->request->peak_slots_max,
		.doubt = book_peak_doubt(&reading->timebase),
	};

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		wish.types |= (uint32_t)filter_wants_type(filter, type) << type;
	if (!reading->peaks)
		reading->peaks = calloc(1, sizeof(*reading->peaks));
	if (!reading->peaks)
		return -ENOMEM;
	return book_peaks_read(reading->peaks, reading->view, &reading->book->reader, &wish);
}

static int book_peaks_put_site(struct book_reading *reading, const struct book_kept_peak *peak,
			       const struct book_site *site)
{
	struct snapshot_buffer row = {
		.process = reading->process,
		.device = peak->device,
		.size = site->bytes,
		.born_ns = timebase_ns(&reading->timebase, site->birth),
		.birth = site->birth,
		.name = book_text(reading, site->name),
		.phase = book_text(reading, site->phase),
		.stack = book_stack(reading, site->stack),
		.refs = 1,
		.type = (uint8_t)peak->type,
		.alike = site->buffers,
	};

	return snapshot_add_buffer(reading->snapshot, &row);
}

/* A peak and its rows; as many as there is room for. */
static int book_peaks_put(struct book_reading *reading, const struct book_kept_peak *peak,
			  uint32_t bound)
{
	struct snapshot *snapshot = reading->snapshot;
	struct snapshot_peak row = {
		.process = reading->process,
		.device = peak->device,
		.type = peak->type,
		.bound = bound,
		.bytes = peak->bytes,
		.time_ns = timebase_ns(&reading->timebase, peak->time),
		.moment_ns = timebase_ns(&reading->timebase, peak->moment),
		.first = snapshot->buffer_count,
		.per_bank = peak->per_bank,
	};
	int r = 0;

	row.per_bank.is_known = row.per_bank.is_known && bound == SNAPSHOT_EXACT;

	while (r == 0 && row.count < peak->count) {
		const struct book_site *site = &peak->sites[row.count];

		r = book_peaks_put_site(reading, peak, site);
		if (r < 0)
			break;
		row.count++;
		row.known += site->bytes;
		row.buffers += site->buffers;
	}
	row.exact = peak->exact && row.count == peak->count && bound == SNAPSHOT_EXACT;
	return r == 0 || r == -ENOBUFS ? snapshot_add_peak(snapshot, &row) : r;
}

/* A peak that was just read, or what was kept of it, if that is more. */
static int book_peaks_put_type(struct book_reading *reading, uint32_t type)
{
	struct book_peaks *peaks = reading->peaks;
	const struct book_peak *peak = &peaks->types[type];
	uint32_t device = reading->view->device, bound = book_bound(reading->view->inexact, type);
	const struct book_kept_peak *kept = book_kept_find(reading->book->kept, device, type, peak);
	struct book_kept_peak fresh = {.device = device,
				       .type = type,
				       .bytes = peak->bytes,
				       .time = peak->time,
				       .moment = peak->moment,
				       .exact = peak->exact,
				       .per_bank = peak->per_bank};
	int r;

	if (kept) {
		struct book_kept_peak both = *kept;

		/* What was kept is of an earlier look; since then there may have been more. */
		both.per_bank = peak->per_bank;
		if (both.per_bank.is_known && kept->per_bank.is_known)
			both.per_bank.bytes = bits_max(both.per_bank.bytes, kept->per_bank.bytes);
		return book_peaks_put(reading, &both, bound);
	}
	r = book_sites_new(peaks->records + peak->first, peak->count, &fresh.sites, &fresh.count);
	if (r == 0)
		r = book_peaks_put(reading, &fresh, bound);
	free(fresh.sites);
	return r;
}

int book_peaks_rows(struct book_reading *reading)
{
	const struct filter *filter = &reading->request->filter;
	int r = 0;

	if (!reading->view->rows_exact)
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": writes faster than its buffers can be read",
			      reading->book->owner.id.pid, reading->view->device);
	for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
		if (reading->peaks->types[type].bytes > 0 && filter_wants_type(filter, type))
			r = book_peaks_put_type(reading, type);
	}
	return r == -ENOBUFS ? 0 : r;
}

int book_kept_collect(struct scan_book *book, const struct snapshot_request *request,
		      struct snapshot *snapshot)
{
	CLEANUP(book_reading_deinit)
	struct book_reading reading = {.book = book, .request = request, .snapshot = snapshot};
	int r;

	if (!book->kept || book->kept->count == 0 ||
	    !filter_wants_pid(&request->filter, book->owner.id.pid))
		return 0;
	r = book_add_process(book, snapshot, &reading.process);
	book_timebase(book, &reading.timebase);
	for (size_t i = 0; r == 0 && i < book->kept->count; i++) {
		struct book_kept_peak peak = book->kept->peaks[i];

		peak.per_bank.is_all = false; /* it was looked at while it was alive */
		r = book_peaks_put(&reading, &peak, SNAPSHOT_EXACT);
	}
	return r == -ENOBUFS ? 0 : r;
}
