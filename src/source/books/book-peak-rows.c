/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks of a shard and what was live at them, as parts of a snapshot. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/types.h"
#include "source/books/book-peak.h"
#include "source/books/book-private.h"
#include "source/books/scan.h"

/*
 * A thread takes its stamp and may then wait for the lock, or for a processor. Hardly any waits so long,
 * and one that does is wrong about a few buffers.
 */
#define BOOK_PEAK_DOUBT_NS (NS_PER_S / 10)

/* The same in stamps of the book; no order at all is known of a clock that stands still. */
static uint64_t book_peak_doubt(const struct timebase *timebase)
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

/* The rows of a peak; as many as there is room for. */
static int book_peaks_put(struct book_reading *reading, uint32_t type)
{
	const struct book_peaks *peaks = reading->peaks;
	const struct book_peak *peak = &peaks->types[type];
	struct snapshot *snapshot = reading->snapshot;
	struct snapshot_peak row = {
		.process = reading->process,
		.device = reading->view->device,
		.type = type,
		.bound = book_bound(reading->view->inexact, type),
		.bytes = peak->bytes,
		.time_ns = timebase_ns(&reading->timebase, peak->time),
		.moment_ns = timebase_ns(&reading->timebase, peak->moment),
		.first = snapshot->buffer_count,
	};
	int r = 0;

	while (r == 0 && row.count < peak->count) {
		r = book_rows_put(reading, &peaks->records[peak->first + row.count]);
		if (r == 0)
			row.known +=
				snapshot_buffer_bytes(&snapshot->buffers[row.first + row.count++]);
	}
	row.exact = peak->exact && row.count == peak->count && row.bound == SNAPSHOT_EXACT;
	return r == 0 || r == -ENOBUFS ? snapshot_add_peak(snapshot, &row) : r;
}

int book_peaks_rows(struct book_reading *reading)
{
	const struct filter *filter = &reading->request->filter;
	int r = 0;

	if (!reading->view->rows_exact)
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ", device %" PRIu32
			      ": writes faster than its buffers can be read",
			      reading->book->owner.pid, reading->view->device);
	for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
		if (reading->peaks->types[type].bytes > 0 && filter_wants_type(filter, type))
			r = book_peaks_put(reading, type);
	}
	return r == -ENOBUFS ? 0 : r;
}
