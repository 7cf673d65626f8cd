/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two kinds of formats: reports that are folders, of one process whose live buffers are sorted into
 * operations; and files, see export-form.h. Each format has a file of its own that defines a struct
 * export_format or a struct export_form.
 */

#include <stdint.h>

#include "cli/common/options.h"
#include "cli/export/visualizer/export-operations.h"
#include "cli/export/visualizer/export-sources.h"
#include "model/snapshot-request.h"

struct export_form;
struct scan;
struct snapshot;

struct export_options {
	const struct export_format *report; /* one of the two, the other is NULL */
	const struct export_form *form;
	const char *path;         /* where to; NULL = to standard output */
	struct options_from from; /* which recording and moment */
	struct snapshot_request request;
	uint32_t rows_max;
};

struct export_job {
	const struct snapshot *snapshot; /* with the buffers of this process only */
	uint32_t process;                /* index into its processes */
	struct export_operations operations;
	struct export_sources sources;
	int folder;          /* of the report, empty; with O_PATH */
	uint64_t rows_max;   /* of buffers */
	char problem[256];   /* on failure: what went wrong, if it is more than an errno */
	uint64_t guessed;    /* result: buffers whose size in each bank is not known */
	uint64_t unbanked;   /* result: of these, those of a memory whose banks are not known */
	uint64_t rows;       /* result: of buffers */
	uint64_t file_count; /* result: source files with their contents */
};

struct export_format {
	const char *name; /* for --format */
	/* Writes all files. 0 or a negative errno. */
	int (*write)(struct export_job *job);
	/* Whether an open folder, and nothing else, is such a report. */
	bool (*is_report)(int folder);
};

extern const struct export_format export_visualizer;

/* Writes a report of the process that the request names; @scan has its book. Return: exit code. */
int export_report(const struct export_options *options, const struct scan *scan,
		  struct snapshot *snapshot);
