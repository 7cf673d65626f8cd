/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known only from the events themselves: the exact timeline, when threads were in which phase, and
 * where events are missing. A thread is in a phase from the first allocation in it until its next one in
 * another.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "cli/report/report-timeline.h"

struct recording;
struct snapshot;

/* Whose book it is. */
struct report_owner {
	uint32_t pid;
	const char *comm;
};

struct report_span {
	uint32_t book;
	uint32_t phase; /* a string of the book */
	uint64_t from_ns, to_ns;
	/* Set later. */
	struct report_owner owner;
	const char *name; /* of the phase */
};

struct report_gap {
	uint32_t book, device;
	uint64_t from_ns, to_ns; /* the events before and after it */
	uint64_t events, allocs, frees;
	bool has_peak;
	struct report_owner owner; /* set later */
};

struct report_walk {
	struct report_span *spans; /* owned, like the next */
	size_t span_count, span_capacity;
	struct report_gap *gaps;
	size_t gap_count, gap_capacity;
	size_t spans_lost, gaps_lost; /* beyond the limits of report.h */

	bool is_done; /* else there were too many events */
	struct report_timeline timeline;

	/* Private. */
	uint64_t near_ns;
	struct map phases; /* of books */
	uint32_t *last;    /* owned; the newest span of each of them */
	size_t last_capacity;
	struct map threads;       /* of books */
	struct report_span *open; /* owned; the span that each of them is in */
	size_t open_capacity;
};

#define REPORT_WALK_NULL     \
	(struct report_walk) \
	{                    \
		0            \
	}

/* Reads all events, if they are not too many; @end: as it is at the end. 0 or a negative errno. */
int report_walk(struct report_walk *walk, struct recording *recording, const struct snapshot *end);
void report_walk_deinit(struct report_walk *walk);
