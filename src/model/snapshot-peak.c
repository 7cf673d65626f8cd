/* SPDX-License-Identifier: Apache-2.0 */

/* The list of peaks. */

#include "model/snapshot-peak.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "model/snapshot.h"

int snapshot_add_peak(struct snapshot *snapshot, const struct snapshot_peak *peak)
{
	struct snapshot_peak *list;

	if (snapshot->peak_count >= SNAPSHOT_PEAKS_MAX) {
		if (snapshot->exact)
			snapshot_note(snapshot, "there are more than %u peaks; not all are shown",
				      SNAPSHOT_PEAKS_MAX);
		snapshot->exact = false;
		return -ENOBUFS;
	}
	list = array_grow(snapshot->peaks, &snapshot->peak_capacity, snapshot->peak_count + 1,
			  sizeof(*list));
	if (!list)
		return -ENOMEM;
	snapshot->peaks = list;
	list[snapshot->peak_count++] = *peak;
	return 0;
}

/* A total order, so that the same state always looks the same. */
static int snapshot_compare_peaks(const void *left, const void *right)
{
	const struct snapshot_peak *a = left, *b = right;

	if (a->bytes != b->bytes)
		return bits_compare(b->bytes, a->bytes);
	if (a->process != b->process)
		return bits_compare(a->process, b->process);
	if (a->type != b->type)
		return bits_compare(a->type, b->type);
	if (a->device != b->device)
		return bits_compare(a->device, b->device);
	return bits_compare(a->first, b->first);
}

void snapshot_sort_peaks(struct snapshot *snapshot)
{
	if (snapshot->peak_count > 1)
		qsort(snapshot->peaks, snapshot->peak_count, sizeof(*snapshot->peaks),
		      snapshot_compare_peaks);
}
