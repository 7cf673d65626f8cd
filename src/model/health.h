/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the daemon is, by its own account: for /healthz, /metrics and "ttmem status". */

#include <stdbool.h>
#include <stdint.h>

#include "model/tally.h"
#include "model/types.h"

/* The daemon's own state, for /healthz and /metrics. */
struct health {
	bool store_runs;
	uint64_t store_queued, store_written, store_dropped, store_bytes;
	uint64_t books, books_refused, ended, leaked, unobserved_exits;
	uint64_t legacy_connections, legacy_messages, legacy_refused;
	uint64_t legacy_taken_over, legacy_in_doubt;
	uint64_t incidents[TYPES_INCIDENTS]; /* since start, indexed by kind */
	uint64_t start_ns;                   /* CLOCK_REALTIME of the daemon's start */
	uint64_t lines_dropped;
	bool pushes; /* to a collector; these are then set: */
	uint64_t push_sent, push_failed, push_partial, push_dropped, push_queued;
	const char *http;             /* where it is served, NULL = nowhere; borrowed */
	const char *version, *socket; /* borrowed */

	/*
	 * The counters of exited processes: tally_add_process() once for each, but only after it
	 * has left the list of tracked books. Health is read before the snapshot it is shown with,
	 * so that nothing is counted twice; a process that is briefly in neither does not show,
	 * because counters never decrease.
	 */
	struct tally past;
};
