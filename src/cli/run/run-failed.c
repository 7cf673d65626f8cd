/* SPDX-License-Identifier: Apache-2.0 */

/* Failed allocations in the summary of a run: a paragraph about the last one, and how many there were. */

#include "cli/run/run-failed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

void run_failed_add(struct run_failed *failed, struct scan_book *book, struct view *view,
		    struct namer *namer, bool is_well)
{
	/* One is enough; if it is handled, none. */
	const struct snapshot_request request = {
		.incidents = true, .explained = !is_well && !failed->text, .namer = namer};
	CLEANUP(snapshot_cleanup) struct snapshot *all = NULL;
	uint64_t count = 0;

	if (book->reader.header.incident_count[BOOK_INCIDENT_ALLOC_FAILED] == 0)
		return;
	all = snapshot_new(clock_ns(CLOCK_REALTIME));
	if (!all || book_collect(book, &request, view, all) < 0)
		return;
	for (size_t i = 0; i < all->incident_count; i++) {
		const struct snapshot_incident *row = &all->incidents[i];

		if (row->kind != types_incident_name(BOOK_INCIDENT_ALLOC_FAILED))
			continue;
		count += row->count;
		if (row->explanation && !failed->text) {
			failed->text = strdup(row->explanation);
			count -= failed->text != NULL;
		}
	}
	if (is_well)
		failed->handled += count;
	else
		failed->others += count;
}

void run_failed_put(const struct run_failed *failed, FILE *out)
{
	if (failed->text) {
		fputs("out of memory: ", out);
		text_put(out, failed->text);
		fputc('\n', out);
	}
	if (failed->others)
		fprintf(out, "%" PRIu64 " more allocation%s failed\n", failed->others,
			failed->others == 1 ? "" : "s");
	if (failed->handled)
		fprintf(out, "%" PRIu64 " failed allocation%s handled by the program\n",
			failed->handled, failed->handled == 1 ? " was" : "s were");
}

void run_failed_deinit(struct run_failed *failed)
{
	free(failed->text);
	failed->text = NULL;
}
