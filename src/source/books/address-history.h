/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What books still know about one address: from the log, graveyard and table of each shard. */

struct history;
struct namer;
struct query;
struct scan_book;
struct snapshot;
struct view;

struct address_history_wish {
	const struct query *query;     /* its address, and where it is looked for */
	const struct snapshot *totals; /* tell which cards devices are; NULL = not known */
	struct namer *namer;           /* for native frames of stacks; NULL = they stay addresses */
};

/*
 * Adds what @book knows about the address to @history, and its owner to @snapshot. @view is only
 * borrowed. Returns 0 or a negative errno; what cannot be read becomes a note.
 */
int address_history_collect(struct scan_book *book, const struct address_history_wish *wish,
			    struct view *view, struct snapshot *snapshot, struct history *history);
