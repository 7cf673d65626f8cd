/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a run held, as limits are compared with it: moments, each of one process, device and type. There
 * is one for each peak, and one for each end of a process that left something. What was live then is in
 * the moment's parts, as far as it is known: that of a peak may not be.
 *
 * It is another one than that of `ttmem diff` (cli/diff/summary.h), which adds up all processes by one
 * kind of group and leaves out lines, so that two runs can be matched. Limits are for one process
 * at a time, by patterns of any kind, and name the line. What they are read from is read by the same
 * code: reports by cli/common/run-report.h, recordings by a session.
 *
 * Moments are begun, parts added to them in any order, and then it is finished.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "model/sites/site.h"

struct budget;
struct snapshot;
struct snapshot_buffer;

/* Of all call sites of a moment one. */
struct budget_part {
	size_t moment;     /* its index, until the summary is finished */
	struct site site;  /* without its module; its rank is 0 if there is no name and no file */
	const char *name;  /* of its buffers, if the site's rank is 0 */
	const char *calls; /* its stack, as stack_calls() has it; NULL = not known */
	const char *phase; /* NULL = none */
	uint64_t bytes;
};

struct budget_moment {
	uint32_t pid;     /* 0 = not known: one of the run's processes */
	const char *comm; /* NULL likewise */
	uint32_t device, type;
	bool is_peak; /* false: the end of the process */
	bool is_exact;
	uint64_t bytes;
	struct budget_part *parts; /* largest first */
	size_t part_count;
};

struct budget_summary {
	bool is_tracked;     /* false: nothing of the run was seen */
	bool is_incomplete;  /* of some processes nothing is known */
	const char *gave_up; /* why the tracking of a process is incomplete; NULL = it is not */
	bool is_cut;         /* the end of the recording is missing */
	bool has_all_parts; /* there is a moment for the peak of each limit's phase or call site, too */

	struct budget_moment *moments;
	size_t count;

	/* Private. */
	size_t capacity;
	struct budget_part *parts;
	size_t part_count, part_capacity;
	struct pool texts;
};

#define BUDGET_SUMMARY_NULL ((struct budget_summary){.moments = NULL})

void budget_summary_deinit(struct budget_summary *summary);

/* The tracking of a process gave up; the first reason is kept. */
void budget_summary_set_gave_up(struct budget_summary *summary, const char *reason);

/* The same for the processes of a snapshot. */
void budget_summary_look_for_gave_up(struct budget_summary *summary,
				     const struct snapshot *snapshot);

/* Adds a moment without parts; texts are copied. Return: its index. */
size_t budget_summary_begin(struct budget_summary *summary, const struct budget_moment *moment);

/* The index of the end of a process on a device, begun with 0 bytes if it is not there. */
size_t budget_summary_end_of(struct budget_summary *summary, const struct budget_moment *process);

/* Adds a part; texts are copied. */
void budget_summary_add(struct budget_summary *summary, const struct budget_part *part);

/* Adds a buffer that was live at the moment. */
void budget_summary_add_buffer(struct budget_summary *summary, size_t moment,
			       const struct snapshot_buffer *buffer);

/* Adds the peaks of a snapshot that was asked for them, with what was live then. */
void budget_summary_add_peaks(struct budget_summary *summary, const struct snapshot *snapshot);

/* Adds up parts of the same stack and phase, and gives each moment its own. */
void budget_summary_finish(struct budget_summary *summary);

/* 0 for parts of one row: of one call site, line of the user, callers and phase; else their order. */
int budget_summary_compare_rows(const struct budget_part *a, const struct budget_part *b);

/*
 * The moment whose parts tell best what was held at @moment: itself, or if they are not known the end of
 * its process. NULL: there is none.
 */
const struct budget_moment *budget_summary_parts_of(const struct budget_summary *summary,
						    const struct budget_moment *moment);

/*
 * Reads a recording. Peaks of phases and call sites are found among its events, which needs to know of
 * which ones: there is a moment for each such limit of the budget. 0, or an exit code after the reason was
 * reported.
 */
int budget_summary_load_recording(const char *path, const struct budget *budget,
				  struct budget_summary *ret_summary);

/* Reads what `ttmem run --json` has written. 0, or -EINVAL with a reason. */
int budget_summary_load(const char *path, struct budget_summary *ret_summary, char *ret_error,
			size_t size);
