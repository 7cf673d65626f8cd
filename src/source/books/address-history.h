/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What books still know about one address: from the log, graveyard and table of each shard. */

#include <stdint.h>

struct history;
struct namer;
struct scan_book;
struct snapshot;
struct snapshot_request;
struct view;

/*
 * Adds what @book knows about the address to @history, and its owner to @snapshot. Of @request its
 * filter, namer and totals count. @view is only borrowed. Returns 0 or a negative errno; what cannot be read becomes a note.
 */
int address_history_collect(struct scan_book *book, uint64_t address,
			    const struct snapshot_request *request, struct view *view,
			    struct snapshot *snapshot, struct history *history);
