/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes in a region's totals that none of its rows account for: of processes that found no free
 * row, or that were killed between two stores. Writers change the totals first and their row later,
 * so one look at a busy region often shows a difference that is none.
 */

#include <stdbool.h>
#include <stdint.h>

struct region;

#define REGION_EXCESS_LOOKS 16u /* at most */
#define REGION_EXCESS_STATES 6u /* different ones that convince */

/* Reads the region once more. 0 or a negative errno. */
typedef int region_excess_again_fn(void *context, struct region *ret_region);

/*
 * Returns what every look shows. 0 if one look shows nothing, and if it cannot be told because the
 * writer may have been interrupted in the middle. @is_quiet: it was last changed so long ago that
 * this is no explanation.
 */
uint64_t region_excess(const struct region *region, bool is_quiet, region_excess_again_fn *again,
		       void *context);
