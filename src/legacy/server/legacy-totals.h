/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What live processes hold in total on each device, numbered as they number it: the old server's
 * view.
 */

#include <stdint.h>

#include "book/format/layout.h"

struct snapshot;

struct legacy_totals_type {
	uint64_t bytes;
	uint64_t buffers;
};

struct legacy_totals {
	uint32_t device;
	struct legacy_totals_type types[BOOK_TYPES];
};

/* What ALLOC and FREE refer to: the types before circular buffers and kernels. */
#define LEGACY_TOTALS_BUFFERS 5u

/* The next device at or after @device that a live process uses or has declared. -ENXIO: none. */
int legacy_totals_next(const struct snapshot *snapshot, uint32_t device,
		       struct legacy_totals *ret_totals);

/* Sums over the types from @from up to but not including @to. */
struct legacy_totals_type legacy_totals_sum(const struct legacy_totals *totals, uint32_t from,
					    uint32_t to);
