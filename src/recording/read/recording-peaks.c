/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was live at the highest moment of each device and type. The index says after which event that
 * was, so the device is restored as of then; a peak that no entry has, because it was before the
 * recording or in a gap, is read from the book as it was at the end, as from any other book.
 */

#include <errno.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/read/view.h"
#include "model/filter.h"
#include "model/snapshot-request.h"
#include "recording/read/recording-peaks.h"
#include "recording/read/recording-private.h"
#include "recording/read/restore-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

/* The event of the highest moment among the first @last ones; 0 = not known. */
static uint64_t peaks_number(const struct recording *recording,
			     const struct recording_stream *stream, uint32_t type, uint64_t last,
			     uint64_t *ret_bytes)
{
	uint64_t number = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < stream->count; i++) {
		const struct recording_entry *entry = stream_entry(recording, stream, i);

		if (entry->kind == RECORDING_SITES || entry->last > last ||
		    entry->high[type] <= *ret_bytes)
			continue;
		*ret_bytes = entry->high[type];
		/* One that began as high as it ever got is told by the chunk before. */
		number = entry->kind == RECORDING_KEYFRAME ? entry->last : entry->high_number[type];
	}
	return number;
}

static int peaks_collect_type(struct recording_peaks *peaks, const struct recording_stream *stream,
			      uint32_t type)
{
	CLEANUP(scan_book_cleanup) struct scan_book *then = NULL;
	struct snapshot_request one = *peaks->request;
	uint64_t bytes,
		number = peaks_number(peaks->recording, stream, type, peaks->view->number, &bytes);
	struct recording_moment moment = *peaks->moment;
	int r;

	one.filter.has_type = true;
	one.filter.type = type;
	one.filter.pid = peaks->book->owner.id.pid;
	one.filter.device_count = 1;
	one.filter.devices[0] = (struct filter_device){.value = stream->device};
	if (number == 0 || bytes < peaks->peak[type])
		return book_collect(peaks->book, &one, peaks->view, peaks->snapshot);
	moment.book = stream->book;
	moment.device = stream->device;
	moment.number = number;
	r = restore_one(peaks->recording, stream, &moment, &then);
	if (r < 0)
		return r;
	then->alive = peaks->book->alive; /* it is the same process, not another one */
	return book_collect(then, &one, peaks->view, peaks->snapshot);
}

int recording_peaks_collect(struct recording_peaks *peaks, size_t number)
{
	const struct filter *filter = &peaks->request->filter;
	const struct recording_known *known = &peaks->recording->books[number];
	int r = 0;

	if (!filter_wants_pid(filter, peaks->book->owner.id.pid))
		return 0;
	for (size_t i = 0; r == 0 && i < known->stream_count; i++) {
		const struct recording_stream *stream =
			&peaks->recording->streams[known->first_stream + i];

		if (filter->device_count && !filter_wants_device(filter, stream->device, 0))
			continue;
		r = view_read_totals(peaks->view, &peaks->book->reader, stream->device, VIEW_DEAD);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			peaks->peak[type] = peaks->view->hot[type].peak;
		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			if (peaks->peak[type] == 0 || !filter_wants_type(filter, type))
				continue;
			/* book_collect() uses the view. */
			r = view_read_totals(peaks->view, &peaks->book->reader, stream->device,
					     VIEW_DEAD);
			if (r == 0)
				r = peaks_collect_type(peaks, stream, type);
		}
	}
	return r;
}
