/* SPDX-License-Identifier: Apache-2.0 */

/* The list of peaks. */

#include "model/snapshot-peak.h"

#include <errno.h>

#include "base/array.h"
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
