/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem diff: two runs, or two moments of runs, compared. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/diff/summary-diff.h"
#include "cli/diff/summary.h"

#define DIFF_WHY 320u
#define DIFF_NOTE 256u

/* One of the two that are compared. */
struct diff_side {
	char *argument, *words; /* owned; what is in them: */
	const char *file;
	const char *at;      /* the moment of a recording, as it was given; NULL = the end */
	const char *kind;    /* "run" or "recording" */
	const char *command; /* NULL = not known */
	bool is_tracked;     /* there was something to look at */
	bool is_exact;
	bool has_stacks; /* some of its buffers have one */
	struct summary summary;
};

struct diff {
	uint32_t by;               /* enum group_kind, of the rows */
	struct diff_side sides[2]; /* before and after */
	struct summary_changes totals;
	struct summary_changes rows;
	char note[DIFF_NOTE]; /* "" = none */
	bool is_limited;      /* --fail-above was given: */
	bool is_exceeded;
};

/*
 * Reads what the argument names, as rows of the summary's kind: 0, or an exit code after the reason was
 * reported. The side is deinited by the caller in any case.
 */
int diff_load(struct diff_side *side, const char *argument);
void diff_side_deinit(struct diff_side *side);

/* Reports what is wrong with a file. Returns the exit code. */
int diff_fail(const char *file, const char *why);

/* A report of `ttmem run --json`: 0, or a negative errno with one line for users. */
int diff_load_run(struct diff_side *side, char ret_why[DIFF_WHY]);

/* A recording, at side->at: as diff_load(). */
int diff_load_recording(struct diff_side *side);

void diff_text(const struct diff *diff, bool with_all);
extern const struct document diff_document; /* its row: the diff */
void diff_json(const struct diff *diff, uint64_t time_ns, FILE *out);

/* "peak", "end", ...: as in documents. */
const char *diff_value_name(enum summary_value value);
