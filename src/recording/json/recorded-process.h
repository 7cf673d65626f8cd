/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes of a recording that had ended by a moment, for documents about them. */

#include <stdbool.h>

struct emit;
struct recording;
struct recording_owner;
struct scan;
struct snapshot_process;

struct recorded_end {
	const struct recording_owner *owner; /* the recording's */
	bool is_closed;                      /* the library said goodbye */
};

/* How a process of a snapshot has ended; @scan: the books of that moment. False: it still lived. */
bool recorded_process_end(const struct recording *recording, const struct scan *scan,
			  const struct snapshot_process *process, struct recorded_end *ret_end);

/* Who it was and how it ended: the members that ttmem.leaks/1 and ttmem.ended/1 have in common. */
void recorded_process_put(struct emit *json, const struct snapshot_process *process,
			  const struct recorded_end *end);
