/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A recording, or a moment of it, as a summary. What is there at the moment comes from the books as they
 * were then, and counts from what the recording knows of each call site. Each device and type has
 * a peak of its own, so there is one look at the books for each.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/diff/diff.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/read/recording-source.h"
#include "recording/read/recording.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"
#include "source/collect.h"
#include "source/source.h"

/* Buffers that lived for less than about a millisecond: 2^10 * 1024 ns. */
#define DIFF_TEMPORARY 10u

static void diff_cleanup_recording(struct recording **recording)
{
	recording_free(*recording);
}

static void diff_cleanup_source(struct source **source)
{
	source_free(*source);
}

static void diff_cleanup_snapshot(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

static void diff_cleanup_book(struct scan_book **book)
{
	scan_book_free(*book);
}

static void diff_cleanup_stacks(struct stacks **stacks)
{
	stacks_free(*stacks);
}

/* All processes and their buffers at a moment, the ended ones among them. */
static int diff_recording_take(struct recording *recording, const struct recording_moment *moment,
			       struct snapshot **ret_snapshot)
{
	CLEANUP(diff_cleanup_source) struct source *source = NULL;
	const struct snapshot_request request = {
		.buffers = true,
		.ended = true,
		.is_own = true,
		.namer = recording_namer(recording),
	};
	struct collect_sources sources;
	int r = recording_source_new(&source, recording, moment);

	if (r < 0)
		return r;
	recording_source_sources(source, &sources);
	sources.notes_overlaps = false;
	r = collect_machine(&sources, &request, ret_snapshot);
	if (r == 0)
		snapshot_drop_empty(*ret_snapshot); /* as a report of ttmem run does */
	return r;
}

static int diff_recording_end(struct diff_side *side, struct recording *recording,
			      const struct recording_moment *moment)
{
	CLEANUP(diff_cleanup_snapshot) struct snapshot *snapshot = NULL;
	const struct summary_part all = {SUMMARY_NO_DEVICE, BOOK_TYPES};
	int r = diff_recording_take(recording, moment, &snapshot);

	if (r < 0)
		return r;
	side->is_exact &= snapshot->exact;
	for (size_t i = 0; !side->has_stacks && i < snapshot->buffer_count; i++)
		side->has_stacks = snapshot->buffers[i].stack;
	r = summary_add_counters(&side->summary, snapshot);
	if (r == 0)
		r = summary_add_buffers(&side->summary, snapshot, &all, SUMMARY_END);
	return r;
}

/* The peak of one device and type, and what was live then. */
static int diff_recording_peak(struct diff_side *side, struct recording *recording,
			       const struct summary_part *part)
{
	CLEANUP(diff_cleanup_snapshot) struct snapshot *snapshot = NULL;
	const struct recording_filter filter = {
		.device = part->device,
		.types = UINT32_C(1) << part->type,
	};
	struct recording_moment moment;
	uint64_t bytes;
	int r = recording_peak(recording, &filter, &moment, &bytes);

	if (r == 0)
		r = summary_add_total(&side->summary, part->device, part->type, SUMMARY_PEAK,
				      bytes);
	if (r == 0)
		r = diff_recording_take(recording, &moment, &snapshot);
	if (r == 0)
		r = summary_add_buffers(&side->summary, snapshot, part, SUMMARY_PEAK);
	return r;
}

/* Of each device and type that was used. */
static int diff_recording_peaks(struct diff_side *side, struct recording *recording)
{
	const struct summary_list *totals = &side->summary.totals;
	CLEANUP_FREE struct summary_part *parts = NULL;
	size_t count;
	int r = 0;

	summary_finish(&side->summary); /* one total for each */
	count = totals->count;
	parts = calloc(count + 1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct summary_part){totals->rows[i].device, totals->rows[i].type};
	side->summary.totals.known |= 1u << SUMMARY_PEAK;
	side->summary.rows.known |= 1u << SUMMARY_PEAK;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = diff_recording_peak(side, recording, &parts[i]);
	return r;
}

static uint64_t diff_temporaries(const struct recording_site *site)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= DIFF_TEMPORARY; i++)
		sum += site->lives[i];
	return sum;
}

static int diff_recording_site(struct diff_side *side, struct stacks *stacks, uint32_t device,
			       const struct recording_site *site)
{
	const struct summary_buffer about = {.stack = stacks_text(stacks, site->stack)};
	char text[SUMMARY_KEY];
	const char *key = summary_key(&side->summary, &about, text);
	uint64_t temporaries = diff_temporaries(site);
	int r;

	if (site->type >= BOOK_TYPES)
		return 0;
	r = summary_add_row(&side->summary, site->type, key, SUMMARY_ALLOCS, site->allocs);
	if (r == 0)
		r = summary_add_row(&side->summary, site->type, key, SUMMARY_FREES, site->frees);
	if (r == 0)
		r = summary_add_row(&side->summary, site->type, key, SUMMARY_TEMPORARIES,
				    temporaries);
	if (r == 0)
		r = summary_add_total(&side->summary, device, site->type, SUMMARY_TEMPORARIES,
				      temporaries);
	return r;
}

static int diff_recording_device(struct diff_side *side, struct recording *recording, size_t book,
				 uint32_t device, const struct recording_moment *moment,
				 struct stacks *stacks)
{
	CLEANUP_FREE struct recording_site *sites = NULL;
	size_t count = 0;
	int r = recording_sites(recording, book, device, moment, &sites, &count);

	if (r == -ENOENT)
		return 0; /* not yet there */
	for (size_t i = 0; r == 0 && i < count; i++)
		r = diff_recording_site(side, stacks, device, &sites[i]);
	return r;
}

static int diff_recording_book(struct diff_side *side, struct recording *recording, size_t number,
			       const struct recording_moment *moment)
{
	CLEANUP(diff_cleanup_book) struct scan_book *book = NULL;
	CLEANUP(diff_cleanup_stacks) struct stacks *stacks = NULL;
	int r = recording_restore(recording, number, moment, &book);
	int64_t device = 0;

	if (r == -ENOENT)
		return 0; /* not yet there */
	if (r == 0)
		r = stacks_new(&stacks, book, recording_namer(recording));
	while (r == 0) {
		device = reader_next_shard(&book->reader, (uint32_t)device);
		if (device < 0)
			return device == -ENXIO ? 0 : (int)device;
		r = diff_recording_device(side, recording, number, (uint32_t)device, moment,
					  stacks);
		device++;
	}
	return r;
}

/* What each call site did; names and phases are not counted. */
static int diff_recording_counts(struct diff_side *side, struct recording *recording,
				 const struct recording_moment *moment)
{
	const uint32_t known =
		1u << SUMMARY_ALLOCS | 1u << SUMMARY_FREES | 1u << SUMMARY_TEMPORARIES;
	size_t books = recording_facts(recording)->books;
	int r = 0;

	if (side->summary.kind != GROUP_SITE)
		return 0;
	side->summary.rows.known |= known;
	side->summary.totals.known |= 1u << SUMMARY_TEMPORARIES;
	for (size_t i = 0; r == 0 && i < books; i++)
		r = diff_recording_book(side, recording, i, moment);
	return r;
}

static int diff_recording_fill(struct diff_side *side, struct recording *recording,
			       char ret_why[DIFF_WHY])
{
	const struct recording_facts *facts = recording_facts(recording);
	const struct recording_filter all = RECORDING_FILTER_ALL;
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE] = "cannot be read";
	int r = recording_find(recording, side->at ? side->at : "end", &all, &moment, why);

	(void)snprintf(ret_why, DIFF_WHY, "%s", why);
	side->is_tracked = facts->books > 0;
	side->is_exact = facts->missed == 0 && facts->torn == 0;
	if (r == 0 && facts->command) {
		side->command = strdup(facts->command);
		r = side->command ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = diff_recording_end(side, recording, &moment);
	if (r == 0)
		r = diff_recording_counts(side, recording, &moment);
	/* At a moment only what is there counts. */
	if (r == 0 && !side->at)
		r = diff_recording_peaks(side, recording);
	return r;
}

int diff_load_recording(struct diff_side *side, char ret_why[DIFF_WHY])
{
	CLEANUP(diff_cleanup_recording) struct recording *recording = NULL;
	char why[RECORDING_WHY_SIZE];
	int r = recording_open(&recording, side->file, why);

	if (r < 0) {
		(void)snprintf(ret_why, DIFF_WHY, "%s", why);
		return r;
	}
	side->kind = "recording";
	r = diff_recording_fill(side, recording, ret_why);
	if (r == -ENOMEM)
		(void)snprintf(ret_why, DIFF_WHY, "out of memory");
	return r;
}
