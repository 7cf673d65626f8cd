/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of "ttmem analyze" share: what was asked, what was read, what was found. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/logs/log-analysis.h"

struct emit;

struct analyze_file {
	const char *path; /* "-" is standard input */
	struct log_reader_counts counts;
};

/* Sums over all rows that were asked for. */
struct analyze_totals {
	uint64_t events, damaged;
	uint64_t blind; /* of the events: of formats that do not record frees */
	uint64_t allocs, frees, reuses;
	uint64_t leaks, leaked_bytes;
	uint64_t ended, ended_bytes; /* of the leaks: left by processes that had ended */
	uint64_t found[LOG_ANALYSIS_KINDS];
	uint64_t early_frees;
	uint64_t unnamed, unnamed_bytes; /* circular buffers and kernels left, without an address */
};

struct analyze {
	bool has_type;
	uint32_t type;
	bool has_top;
	uint32_t top;
	struct analyze_file *files;
	size_t file_count;
	bool is_doubted; /* some file cannot be judged; reported elsewhere */
	struct log_analysis_result result;
	struct analyze_totals totals;
	const char **stacks; /* of each call site with names decoded, NULL = as it is in the log */
	char *names;         /* their bytes */
};

/* Why leaks cannot be determined: some events are of a format without frees. NULL: they can. */
const char *analyze_no_frees(const struct analyze_file *file);

/* The file's name for people. */
const char *analyze_path(const struct analyze_file *file);

bool analyze_wants_type(const struct analyze *analyze, uint32_t type);

/* "DRAM"; NULL if the log does not say. */
const char *analyze_type_name(uint32_t type);

/* Numbers of call sites, most leaked bytes first, then most bytes. Freed by the caller. NULL: no memory. */
size_t *analyze_sites(const struct analyze *analyze, size_t *ret_count);

/* Demangles C++ function names. 0 or a negative errno; names then stay as they are. */
int analyze_names(struct analyze *analyze);
void analyze_names_deinit(struct analyze *analyze);

/* The lines of a call site's stack; NULL if there is none. */
const char *analyze_stack(const struct analyze *analyze, uint32_t site);

/* "site": the frame that stands for such a stack (NULL = none), as model/sites/site.h chooses it. */
void analyze_site_json(struct emit *json, const char *stack);

void analyze_print(const struct analyze *analyze);
void analyze_json(const struct analyze *analyze, uint64_t time_ns);

/* S1's list: each leaked address once, in ascending order. 0 or -ENOMEM. */
int analyze_addresses(const struct analyze *analyze);
