/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A recording, or a moment of it, as a summary. What is there at the moment comes from the books as they
 * were then, and counts from what the recording knows of each call site. Each device and type has
 * a peak of its own, so there is one look at the books for each.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/session.h"
#include "cli/diff/diff.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

/* All processes and their buffers at a moment, the ended ones among them. */
static int diff_recording_take(struct session *session, const struct recording_moment *moment,
			       struct snapshot **ret_snapshot)
{
	const struct snapshot_request request = {
		.buffers = true,
		.is_own = true,
		.namer = session_namer(session),
	};
	int r = moment ? session_move(session, moment) : 0;

	if (r == 0)
		r = session_take(session, &request, ret_snapshot);
	if (r == 0)
		snapshot_drop_empty(*ret_snapshot); /* as a report of ttmem run does */
	return r;
}

static int diff_recording_end(struct diff_side *side, struct session *session)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct summary_part all = {SUMMARY_NO_DEVICE, BOOK_TYPES};
	int r = diff_recording_take(session, NULL, &snapshot);

	if (r < 0)
		return r;
	side->is_exact &= snapshot->exact;
	for (size_t i = 0; !side->has_stacks && i < snapshot->buffer_count; i++)
		side->has_stacks = snapshot->buffers[i].stack;
	summary_add_counters(&side->summary, snapshot);
	summary_add_buffers(&side->summary, snapshot, &all, SUMMARY_END);
	return 0;
}

/* The peak of one device and type, and what was live then. */
static int diff_recording_peak(struct diff_side *side, struct session *session,
			       const struct summary_part *part)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct recording_filter filter = {
		.device = part->device,
		.types = UINT32_C(1) << part->type,
	};
	struct recording_moment moment;
	uint64_t bytes;
	int r = recording_peak(session_recording(session), &filter, &moment, &bytes);

	if (r == 0)
		r = diff_recording_take(session, &moment, &snapshot);
	if (r < 0)
		return r;
	summary_add_total(&side->summary, part->device, part->type, SUMMARY_PEAK, bytes);
	summary_add_buffers(&side->summary, snapshot, part, SUMMARY_PEAK);
	return 0;
}

/* Of each device and type that was used. */
static int diff_recording_peaks(struct diff_side *side, struct session *session)
{
	const struct summary_list *totals = &side->summary.totals;
	CLEANUP_FREE struct summary_part *parts = NULL;
	size_t count;
	int r = 0;

	summary_finish(&side->summary); /* one total for each */
	count = totals->count;
	parts = must_alloc(count + 1, sizeof(*parts));
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct summary_part){totals->rows[i].device, totals->rows[i].type};
	side->summary.totals.known |= 1u << SUMMARY_PEAK;
	side->summary.rows.known |= 1u << SUMMARY_PEAK;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = diff_recording_peak(side, session, &parts[i]);
	return r;
}

static void diff_recording_site(struct diff_side *side, struct stacks *stacks, uint32_t device,
				const struct recording_site *site)
{
	const struct summary_buffer about = {.stack = stacks_get(stacks, site->stack)};
	struct summary_name name;
	uint64_t temporaries = recording_short_lives(site);

	if (site->type >= BOOK_TYPES)
		return;
	summary_name_init(&name, &side->summary, &about);
	summary_add_row(&side->summary, site->type, &name, SUMMARY_ALLOCS, site->allocs);
	summary_add_row(&side->summary, site->type, &name, SUMMARY_FREES, site->frees);
	summary_add_row(&side->summary, site->type, &name, SUMMARY_TEMPORARIES, temporaries);
	summary_add_total(&side->summary, device, site->type, SUMMARY_TEMPORARIES, temporaries);
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
		diff_recording_site(side, stacks, device, &sites[i]);
	return r;
}

static int diff_recording_book(struct diff_side *side, struct recording *recording, size_t number,
			       const struct recording_moment *moment)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	CLEANUP(stacks_cleanup) struct stacks *stacks = NULL;
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
static int diff_recording_counts(struct diff_side *side, struct session *session)
{
	struct recording *recording = session_recording(session);
	const uint32_t known =
		1u << SUMMARY_ALLOCS | 1u << SUMMARY_FREES | 1u << SUMMARY_TEMPORARIES;
	size_t books = recording_facts(recording)->books;
	int r = 0;

	if (side->summary.kind != GROUP_SITE)
		return 0;
	side->summary.rows.known |= known;
	side->summary.totals.known |= 1u << SUMMARY_TEMPORARIES;
	for (size_t i = 0; r == 0 && i < books; i++)
		r = diff_recording_book(side, recording, i, session_moment(session));
	return r;
}

static int diff_recording_fill(struct diff_side *side, struct session *session)
{
	const struct recording_facts *facts = recording_facts(session_recording(session));
	int r;

	side->is_tracked = facts->books > 0;
	side->is_exact = facts->missed == 0 && facts->torn == 0;
	if (facts->command)
		side->command = side->words = must_copy(facts->command);
	r = diff_recording_end(side, session);
	if (r == 0)
		r = diff_recording_counts(side, session);
	/* At a moment only what is there counts. */
	if (r == 0 && !side->at)
		r = diff_recording_peaks(side, session);
	return r;
}

int diff_load_recording(struct diff_side *side)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	const struct options_from from = {.file = side->file, .at = side->at};
	int r = session_start(&session, "diff", &from, NULL);

	if (r != 0)
		return r;
	side->kind = "recording";
	r = diff_recording_fill(side, session);
	return r < 0 ? diff_fail(side->file, user_file_error(r)) : 0;
}
