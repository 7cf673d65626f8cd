/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The difference is believed if it is still there after the writers have gone on several times, or
 * if the second look at a quiet region shows the same as the first.
 */

#include "source/host/region-excess.h"

#include <string.h>

#include "base/bits.h"
#include "model/merge.h"
#include "source/host/region.h"

static uint64_t region_excess_seen(const struct region *region)
{
	uint64_t excess = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t named = 0;

		for (uint32_t i = 0; i < region->process_count; i++)
			named = merge_add(named, region->processes[i].used[type]);
		if (region->used[type] > named)
			excess = merge_add(excess, region->used[type] - named);
	}
	return excess;
}

uint64_t region_excess(const struct region *region, bool is_quiet, region_excess_again_fn *again,
		       void *context)
{
	uint64_t least = region_excess_seen(region);
	struct region last = *region, next;
	uint32_t states = 1;

	for (uint32_t looks = 1; least > 0 && looks < REGION_EXCESS_LOOKS; looks++) {
		if (again(context, &next) < 0)
			return 0;
		least = bits_min(least, region_excess_seen(&next));
		if (next.stamp == last.stamp &&
		    memcmp(next.used, last.used, sizeof(next.used)) == 0) {
			if (is_quiet)
				return least;
			continue;
		}
		is_quiet = false;
		last = next;
		if (++states == REGION_EXCESS_STATES)
			return least;
	}
	return 0;
}
