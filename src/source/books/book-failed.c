/* SPDX-License-Identifier: Apache-2.0 */

/* Why an allocation failed: the state of that moment, to which the log leads back. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/memory/failed-text.h"
#include "model/snapshot-request.h"
#include "source/books/book-peak.h"
#include "source/books/book-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

/* Fills a snapshot with the state of that moment. 0, -ENOENT if it is not known any more, or another error. */
static int book_failed_read(struct book_reading *reading, const struct book_incident *failed,
			    struct snapshot *then, struct book_event *ret_event)
{
	const struct snapshot_request request = {.buffers = true, .namer = reading->request->namer};
	CLEANUP(book_reading_deinit)
	struct book_reading past = {.book = reading->book,
				    .request = &request,
				    .view = reading->view,
				    .snapshot = then,
				    .timebase = reading->timebase};
	const struct book_peak_wish wish = {.device = failed->device,
					    .owner = scan_book_owner(reading->book),
					    .slots_max = reading->request->peak_slots_max};
	int r;

	past.peaks = calloc(1, sizeof(*past.peaks));
	if (!past.peaks)
		return -ENOMEM;
	r = book_peaks_rewind_failed(past.peaks, past.view, &past.book->reader, &wish, failed,
				     ret_event);
	if (r == 0)
		r = book_add_process(past.book, then, &past.process);
	if (r == 0)
		r = book_devices(&past);
	return r == 0 ? book_rows(&past) : r;
}

void book_explain_failed(struct book_reading *reading, const struct book_incident *failed,
			 struct snapshot_incident *incident)
{
	CLEANUP(snapshot_cleanup) struct snapshot *then = snapshot_new(reading->snapshot->time_ns);
	struct snapshot_incident about = *incident;
	CLEANUP_FREE char *text = NULL;
	struct book_event event;
	int r = then ? book_failed_read(reading, failed, then, &event) : -ENOMEM;

	if (r < 0)
		about.count = 1; /* of the first one, all that is told was stored */
	else if (event.time > failed->second.time && failed->count > 1) {
		/* The figures of the first one do not hold for a later one. */
		struct book_shape shape = reader_shape(&reading->book->reader, event.record.shape);

		about.size = event.record.size;
		about.size_per_bank = shape.size_per_bank;
		about.banks = shape.banks;
		about.is_per_core = shape.flags & BOOK_SHAPE_PER_CORE;
		about.largest_free = UINT64_MAX;
		about.bank_size = about.bank_free = 0;
	}
	text = failed_text(&about, reading->book->owner.id.pid, r < 0 ? NULL : then);
	incident->explanation = text ? snapshot_text(reading->snapshot, text, strlen(text)) : NULL;
}
