/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.leaks/1 of a recording: what the processes that had ended by a moment left. */

#include <stdint.h>

struct emit;
struct recording;
struct scan;
struct snapshot;

struct recorded_leaks_wish {
	const struct recording *recording;
	const struct scan *scan; /* its books at that moment */
	uint64_t since_ns;       /* only of processes that ended then or later */
	uint64_t buffers_max;    /* listed of each process */
};

/*
 * @snapshot: of that moment, with the buffers of ended processes and with names; it is sorted. 0 or a
 * negative errno.
 */
int recorded_leaks_document(struct emit *json, struct snapshot *snapshot,
			    const struct recorded_leaks_wish *wish);
