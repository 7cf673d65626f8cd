/* SPDX-License-Identifier: Apache-2.0 */

/* Keeping the highest peaks. */

#include "cli/run/run-peaks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/accept.h"
#include "source/books/book-kept.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define RUN_PEAKS_SHARE 20u

void run_peaks_look(struct run_peaks *peaks, struct accept_peer *const *peers, size_t count)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct view *view;

	if (start < peaks->looked_ns)
		return;
	view = calloc(1, sizeof(*view));
	for (size_t i = 0; view && i < count; i++) {
		/* Without memory, or if it cannot be read, the end of the book is all there is. */
		if (peers[i]->book)
			(void)book_kept_look(peers[i]->book, view);
	}
	if (view)
		view_deinit(view);
	free(view);
	peaks->looked_ns = start + RUN_PEAKS_SHARE * (clock_ns(CLOCK_MONOTONIC) - start);
}

const struct snapshot_peak *run_peaks_find(const struct run_peaks *peaks, uint32_t device,
					   uint32_t type, const struct snapshot **ret_snapshot)
{
	for (size_t i = 0; i < peaks->count; i++) {
		const struct snapshot *top = peaks->tops[i];

		for (size_t k = 0; k < top->peak_count; k++) {
			if (top->peaks[k].device != device || top->peaks[k].type != type)
				continue;
			*ret_snapshot = top;
			return &top->peaks[k];
		}
	}
	return NULL;
}

static bool run_peaks_is_highest(const struct run_peaks *peaks, uint32_t device, uint32_t type,
				 uint64_t bytes)
{
	const struct snapshot *top;
	const struct snapshot_peak *best = run_peaks_find(peaks, device, type, &top);

	return bytes > (best ? best->bytes : 0);
}

/* Takes a peak of a device and type out of its snapshot, and a snapshot without peaks out of the list. */
static void run_peaks_drop(struct run_peaks *peaks, uint32_t device, uint32_t type)
{
	for (size_t i = peaks->count; i > 0; i--) {
		struct snapshot *top = peaks->tops[i - 1];
		size_t kept = 0;

		for (size_t k = 0; k < top->peak_count; k++) {
			if (top->peaks[k].device != device || top->peaks[k].type != type)
				top->peaks[kept++] = top->peaks[k];
		}
		top->peak_count = kept;
		if (kept > 0)
			continue;
		snapshot_free(top);
		peaks->count--;
		for (size_t k = i - 1; k < peaks->count; k++)
			peaks->tops[k] = peaks->tops[k + 1];
	}
}

/* Keeps those peaks of @top that are higher than what there was, and drops that. */
static void run_peaks_choose(struct run_peaks *peaks, struct snapshot *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->peak_count; i++) {
		const struct snapshot_peak peak = top->peaks[i];

		if (!run_peaks_is_highest(peaks, peak.device, peak.type, peak.bytes))
			continue;
		run_peaks_drop(peaks, peak.device, peak.type);
		top->peaks[kept++] = peak;
	}
	top->peak_count = kept;
	snapshot_sort_peaks(top);
}

/* Whether the totals of a process have a higher peak than there was. */
static bool run_peaks_wants(const struct run_peaks *peaks, const struct snapshot *totals)
{
	for (size_t i = 0; i < totals->process_count; i++) {
		const struct snapshot_process *process = &totals->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				if (run_peaks_is_highest(peaks, part->device, type,
							 part->memory[type].peak))
					return true;
			}
		}
	}
	return false;
}

static int run_peaks_take(struct scan_book *book, struct view *view,
			  const struct snapshot_request *request, struct snapshot **ret_snapshot)
{
	CLEANUP(snapshot_cleanup)
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	int r = snapshot ? book_collect(book, request, view, snapshot) : -ENOMEM;

	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r == 0)
		*ret_snapshot = cleanup_steal(snapshot);
	return r;
}

int run_peaks_add(struct run_peaks *peaks, struct scan_book *book, struct view *view,
		  struct namer *namer)
{
	static const struct snapshot_request totals_only = {0};
	const struct snapshot_request request = {.buffers = true, .at_peak = true, .namer = namer};
	CLEANUP(snapshot_cleanup) struct snapshot *totals = NULL, *top = NULL;
	struct snapshot **tops;
	int r = run_peaks_take(book, view, &totals_only, &totals);

	if (r < 0 || !totals || !run_peaks_wants(peaks, totals))
		return r;
	r = run_peaks_take(book, view, &request, &top);
	if (r < 0 || !top)
		return r;
	run_peaks_choose(peaks, top);
	if (top->peak_count == 0)
		return 0;
	tops = array_grow(peaks->tops, &peaks->capacity, peaks->count + 1,
			  sizeof(struct snapshot *));
	if (!tops)
		return -ENOMEM;
	peaks->tops = tops;
	tops[peaks->count++] = cleanup_steal(top);
	return 0;
}

void run_peaks_deinit(struct run_peaks *peaks)
{
	for (size_t i = 0; i < peaks->count; i++)
		snapshot_free(peaks->tops[i]);
	free(peaks->tops);
	*peaks = (struct run_peaks){0};
}
