/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The paragraph about a failed allocation: what was asked for and by which line, what was free, and who held
 * the rest, in the state of that moment, which the book's history leads back to.
 */

#include "cli/run/run-failed.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "book/read/view.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/book-kept.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define RUN_FAILED_SITES 5
#define RUN_FAILED_TEXT 4096

static void run_failed_cleanup(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

/* The line that asked: from the incidents of the book, which have names. */
static void run_failed_put_line(const struct book_incident *incident, struct scan_book *book,
				struct view *view, struct namer *namer, FILE *out)
{
	const struct snapshot_request request = {.incidents = true, .namer = namer};
	CLEANUP(run_failed_cleanup) struct snapshot *all = snapshot_new(clock_ns(CLOCK_REALTIME));
	char line[RUN_FAILED_TEXT];

	if (!all || book_collect(book, &request, view, all) < 0)
		return;
	for (size_t i = 0; i < all->incident_count; i++) {
		const struct snapshot_incident *row = &all->incidents[i];

		if (row->kind != types_incident_name(BOOK_INCIDENT_ALLOC_FAILED) ||
		    row->device != incident->device || row->type != incident->type ||
		    row->size != incident->size || !row->second.stack)
			continue;
		fputs(" by ", out);
		text_put(out, site_rows_single(row->second.stack, line, sizeof(line)));
		if (row->second.phase && *row->second.phase) {
			fputs(" in phase ", out);
			text_put(out, row->second.phase);
		}
		return;
	}
}

static void run_failed_put_free(const struct book_incident *incident, FILE *out)
{
	const char *where = incident->size_per_bank ? " in each bank" : "";
	char number[TEXT_NUMBER_SIZE];

	if (incident->bank_size) {
		fprintf(out, " %s were free", text_size(incident->bank_free, number));
		fprintf(out, " of %s in each bank.", text_size(incident->bank_size, number));
	}
	if (incident->largest_free != UINT64_MAX)
		fprintf(out, " The largest free block had %s%s.",
			text_size(incident->largest_free, number), where);
	else
		fputs(" The largest free block is not known.", out);
}

/* What is certain without a map; "ttmem fit" of a recording names the buffers. */
static void run_failed_put_gone(const struct book_incident *incident, FILE *out)
{
	uint64_t need = incident->size_per_bank;
	char number[TEXT_NUMBER_SIZE];

	if (!need || !incident->bank_size)
		return;
	if (need > incident->bank_size)
		fputs(" No bank is that large: whatever goes, it does not fit.", out);
	else if (need > incident->bank_free)
		fprintf(out, " At least %s in each bank would have to go.",
			text_size(need - incident->bank_free, number));
	else
		fputs(" That much is free, but fragmented: buffers between the free blocks would "
		      "have "
		      "to go.",
		      out);
}

static void run_failed_put_holders(const struct book_incident *incident, struct scan_book *book,
				   struct view *view, struct namer *namer, FILE *out)
{
	CLEANUP(run_failed_cleanup) struct snapshot *then = snapshot_new(clock_ns(CLOCK_REALTIME));
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	char number[TEXT_NUMBER_SIZE];
	size_t shown;

	if (!then || book_failed_collect(book, view, namer, incident, then) < 0) {
		fputs(" Who held the rest is not known any more.", out);
		return;
	}
	if (then->buffer_count == 0) {
		fputs(" This process held nothing of it.", out);
		return;
	}
	shown = bits_min(then->buffer_count, RUN_FAILED_SITES);
	for (size_t i = 0; i < shown; i++)
		site_rows_add_stack(&rows, then->buffers[i].stack);
	site_rows_finish(&rows);
	fputs(" It was held by: ", out);
	for (size_t i = 0; i < shown; i++) {
		const struct snapshot_buffer *row = &then->buffers[i];
		const char *text = site_rows_text(&rows, i);

		fprintf(out, "%s%s in %" PRIu32 " buffer%s, ", i ? "; " : "",
			text_size(row->size, number), row->alike, row->alike == 1 ? "" : "s");
		text_put(out, *text ? text : row->name ? row->name : "(no stack)");
	}
	if (then->buffer_count > shown)
		fprintf(out, "; and %zu more call sites", then->buffer_count - shown);
	fputc('.', out);
}

static char *run_failed_text(const struct book_incident *incident, struct scan_book *book,
			     struct view *view, struct namer *namer)
{
	char *text = NULL, number[TEXT_NUMBER_SIZE];
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	const char *type = types_name(incident->type);

	if (!out)
		return NULL;
	fprintf(out, "out of memory: %s of %s on device %" PRIu32,
		incident->size ? text_size(incident->size, number) : "an unknown number of bytes",
		type ? type : "memory", incident->device);
	if (incident->size_per_bank && incident->banks)
		fprintf(out, " (%s in each of %" PRIu32 " banks)",
			text_size(incident->size_per_bank, number), incident->banks);
	fputs(" were asked for", out);
	run_failed_put_line(incident, book, view, namer, out);
	fprintf(out, ", pid %" PRIu32 ".", book->owner.pid);
	run_failed_put_free(incident, out);
	run_failed_put_holders(incident, book, view, namer, out);
	run_failed_put_gone(incident, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void run_failed_add(struct run_failed *failed, struct scan_book *book, struct view *view,
		    struct namer *namer, bool is_well)
{
	const struct book_header *header = &book->reader.header;
	uint64_t entries = bits_min(header->incident_count[BOOK_INCIDENT_ALLOC_FAILED],
				    BOOK_INCIDENTS_PER_KIND);
	struct book_incident last = {.last_time = 0}, incident;
	uint64_t count = 0;

	for (uint32_t i = 0; i < entries; i++) {
		if (reader_incident(&book->reader, BOOK_INCIDENT_ALLOC_FAILED, i, &incident) < 0 ||
		    incident.device >= BOOK_DEVICES)
			continue;
		count += incident.count;
		if (incident.last_time >= last.last_time)
			last = incident;
	}
	if (count == 0)
		return;
	if (is_well) {
		failed->handled += count;
		return;
	}
	failed->others += count - (failed->text ? 0 : 1);
	if (!failed->text)
		failed->text = run_failed_text(&last, book, view, namer);
}

void run_failed_put(const struct run_failed *failed, FILE *out)
{
	if (failed->text) {
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
