/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What differs between two summaries, the largest change first. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/summary.h"

struct summary_change {
	uint32_t device; /* as in a row */
	uint32_t type;
	const char *key;         /* lives as long as the summaries */
	const struct site *site; /* likewise; NULL = none */
	struct summary_amount {
		uint64_t before, after; /* 0 where there was none */
		int64_t change;         /* after minus before; saturates */
		bool is_known;          /* as in the list that it is in */
	} values[SUMMARY_VALUES];
};

struct summary_changes {
	struct summary_change *list; /* owned */
	size_t count;
	uint32_t known; /* bit 1 << value: both have it, and only these are compared */
};

#define SUMMARY_CHANGES_NULL ((struct summary_changes){.list = NULL})

/*
 * What differs, the largest change first; or with @with_same all, in the order of the lists. The caller
 * deinits it before the summaries.
 */
struct summary_changes summary_diff(const struct summary_list *before,
				    const struct summary_list *after, bool with_same);
void summary_changes_deinit(struct summary_changes *changes);
