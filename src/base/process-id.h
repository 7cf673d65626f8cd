/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which process: its pid, and when it started, because the kernel uses pids again. All pids that are
 * compared are of one pid namespace, that of the program that reads them; so the namespace is not a
 * part of it.
 *
 * A pid as another process counts it (ns_pid, the rows of a region, the header of a book) is not an
 * identity, and stands as a plain number. The start as a date (start_ns) is derived and shown; it
 * moves with the clock, so nothing is compared by it.
 */

#include <stdbool.h>
#include <stdint.h>

struct process_id {
	uint32_t pid;         /* 0 = none */
	uint64_t start_ticks; /* as in the initial time namespace; 0 = not known */
};

static inline bool process_id_equal(struct process_id a, struct process_id b)
{
	return a.pid == b.pid && a.start_ticks == b.start_ticks;
}

/* By pid, then by start. */
static inline int process_id_compare(struct process_id a, struct process_id b)
{
	if (a.pid != b.pid)
		return a.pid < b.pid ? -1 : 1;
	return (a.start_ticks > b.start_ticks) - (a.start_ticks < b.start_ticks);
}
