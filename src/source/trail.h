/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What books still know of one address: log, graveyard and table of each shard. */

#include <stdint.h>

struct filter;
struct history;
struct scan_book;
struct snapshot;
struct view;

/*
 * Adds what @book knows of @address to @history, and its owner to @snapshot. @view is only lent. 0 or a
 * negative errno; what cannot be read becomes a note.
 */
int trail_collect(struct scan_book *book, const struct filter *filter, uint64_t address,
		  struct view *view, struct snapshot *snapshot, struct history *history);
