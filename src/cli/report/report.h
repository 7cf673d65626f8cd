/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The document of a report, docs/schema/report.json, made of a recording. Every part of it is bounded: a
 * page that cannot be opened helps nobody. What is left out is counted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/emit.h"
#include "cli/report/report-texts.h"
#include "cli/report/report-walk.h"
#include "recording/read/recording.h"

struct snapshot;

#define REPORT_SAMPLES 600u         /* points of the timeline: one for every other pixel */
#define REPORT_SITES_MAX 400u       /* of the peak, and of the end; the largest */
#define REPORT_NAMES_MAX 5u         /* of a site */
#define REPORT_TEMPORARIES_MAX 300u /* call sites */
#define REPORT_GROWN_MAX 200u       /* call sites */
#define REPORT_INCIDENTS_MAX 200u   /* the first */
#define REPORT_PROCESSES_MAX 1000u
#define REPORT_MARKS_MAX 1000u
#define REPORT_PHASES_MAX 3000u /* times in a phase; what follows soon on the same is one */
#define REPORT_GAPS_MAX 1000u
#define REPORT_SPACES_MAX 64u   /* memories over time */
#define REPORT_MAPS_MAX 32u     /* memories at the peak */
#define REPORT_BLOCKS_MAX 4000u /* of all maps together; the largest, likewise holes */

/* Events that are read one by one: a few seconds. */
#define REPORT_EVENTS_MAX UINT64_C(20000000)

struct report {
	struct recording *recording;
	const struct recording_facts *facts;
	const char *file; /* the recording, without folders: where it lay is nobody's business */
	struct emit json;
	struct report_stacks stacks;
	struct snapshot *peak; /* owned; NULL = nothing was ever in use; likewise the next */
	struct snapshot *end;
	struct report_walk walk;
	struct recording_moment peak_moment, end_moment;
	uint64_t peak_bytes;
};

/* Writes the document. 0 or a negative errno. */
int report_document(struct recording *recording, FILE *out);

/*
 * Everything as it was at a moment, with @ended also what ended processes had left. The caller owns the
 * snapshot. 0 or a negative errno.
 */
int report_take(const struct report *report, const struct recording_moment *moment, bool ended,
		struct snapshot **ret_snapshot);

/* The parts of the document. 0 or a negative errno. */
int report_put_held(struct report *report, const char *key, const struct snapshot *snapshot,
		    uint64_t bytes);
void report_put_incidents(struct report *report);
int report_put_moments(struct report *report); /* "growth" and "fragmentation" */
int report_put_maps(struct report *report);
int report_put_books(struct report *report); /* "gaps", "marks", "phases" and "temporaries" */

/* What was allocated where, as a member of each list of call sites has it. */
struct report_site {
	uint32_t type;
	const char *phase; /* NULL = none */
	struct report_index stack;
};

extern const struct field report_site_fields[];
