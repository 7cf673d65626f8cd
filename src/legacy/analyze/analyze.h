/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of "ttmem analyze" share: what was asked, what was read, what was found. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "legacy/analyze/log-analysis.h"

struct document;

struct analyze_file {
	const char *path; /* "-" is standard input */
	struct log_reader_counts counts;
};

struct analyze {
	bool has_type;
	uint32_t type;
	uint32_t top; /* rows of each list */
	struct analyze_file *files;
	size_t file_count;
	bool is_doubted;               /* some file cannot be judged; reported elsewhere */
	struct log_analysis *analysis; /* only of the type */
	size_t site_count;             /* the first of its call sites */

	/* Sums over all rows that were asked for. */
	struct log_analysis_sum totals;
	struct log_reader_counts counts;
	uint64_t ended, ended_bytes;     /* of the leaks: left by processes that had ended */
	uint64_t unnamed, unnamed_bytes; /* circular buffers and kernels left, without an address */
};

/* Why leaks cannot be determined: some events are of a format without frees. NULL: they can. */
const char *analyze_no_frees(const struct analyze_file *file);

/* The file's name for people. */
const char *analyze_path(const struct analyze_file *file);

/* Demangles C++ function names in the stacks of call sites, as far as that is possible. */
void analyze_names(struct log_analysis *analysis);

/* Of the text of a stack: its lines, and the frame that stands for them (model/sites/site.h). */
extern const struct field analyze_stack_fields[];

extern const struct document analyze_document;

void analyze_print(const struct analyze *analyze);
void analyze_json(const struct analyze *analyze, uint64_t time_ns);
