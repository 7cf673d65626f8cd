/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything that processes do not tell themselves: the driver's files and tt-metal's regions. There is nothing
 * to keep between two looks, so this source is a function; it may be called by several threads at a time.
 */

#include <stddef.h>

struct snapshot;
struct snapshot_request;

/*
 * Adds to a snapshot that has its books already; not to a page. Only for collect_machine(). 0 or a negative errno.
 * @ret_closed: so many regions may not be read by us; perhaps somebody else may (daemon_client_regions()), if not
 * host_note_closed().
 */
int host_collect(const struct snapshot_request *request, struct snapshot *snapshot,
		 size_t *ret_closed);

/* Says so, and what to do. */
void host_note_closed(size_t closed, struct snapshot *snapshot);
