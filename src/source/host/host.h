/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything that processes do not report themselves: the driver's files and tt-metal's regions.
 * There is no state between two calls but what the caller keeps (card-watch.h), so this source is a
 * function; several threads may call it at a time.
 */

#include <stdbool.h>
#include <stddef.h>

struct card_watch;
struct nodes_teller;
struct snapshot;
struct snapshot_request;

/* What we may not read. The daemon may: daemon_client_regions(), daemon_client_driver_memory(). */
struct host_closed {
	size_t regions;     /* how many; if nobody can read them, call host_note_closed() */
	bool driver_memory; /* of some card */
};

/*
 * Adds to a snapshot that already has its books; not to a page. Only for collect_machine(). Returns
 * 0 or a negative errno. @cards: NULL = nothing is remembered. @teller: as for nodes_check().
 */
int host_collect(const struct snapshot_request *request, struct card_watch *cards,
		 const struct nodes_teller *teller, struct snapshot *snapshot,
		 struct host_closed *ret_closed);

/* Adds a note that says so, and what to do. */
void host_note_closed(size_t closed, struct snapshot *snapshot);
