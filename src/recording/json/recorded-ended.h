/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.ended/1 of a recording: all processes that had ended by its end, newest first. */

#include <stdint.h>

struct emit;
struct recording;
struct scan;
struct snapshot;

struct recorded_ended_wish {
	const struct recording *recording;
	const struct scan *scan; /* its books at the end */
	uint32_t pid;            /* 0 = any */
	uint64_t since_ns;       /* only those that ended then or later */
};

/* @end: totals of the end. 0 or -ENOMEM. */
int recorded_ended_document(struct emit *json, const struct snapshot *end,
			    const struct recorded_ended_wish *wish);
