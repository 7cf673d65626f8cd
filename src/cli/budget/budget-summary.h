/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a run held, as limits are compared with it: moments, each of one process, device and type. There
 * is one for each peak, and one for each end of a process that left something. What was live then is in
 * the moment's parts, as far as it is known: that of a peak may not be.
 *
 * Moments are begun, parts added to them in any order, and then it is finished.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* Of all call sites of a moment one. All texts but the name may be NULL even for one that has a stack. */
struct budget_part {
	size_t moment; /* its index, until the summary is finished */
	const char *function;
	const char *file;
	uint32_t line;     /* 0 = not known */
	const char *name;  /* of its buffers, if there is neither function nor file */
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
	bool is_tracked;    /* false: nothing of the run was seen */
	bool is_incomplete; /* of some processes nothing is known */
	bool has_all_parts; /* there is a moment for the peak of each phase and call site, too */

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

/* Adds a moment without parts; texts are copied. 0 or -ENOMEM. */
int budget_summary_begin(struct budget_summary *summary, const struct budget_moment *moment,
			 size_t *ret_index);

/* The end of a process on a device, begun with 0 bytes if it is not there. 0 or -ENOMEM. */
int budget_summary_end_of(struct budget_summary *summary, const struct budget_moment *process,
			  size_t *ret_index);

/* Adds a part; texts are copied. 0 or -ENOMEM. */
int budget_summary_add(struct budget_summary *summary, const struct budget_part *part);

/* Adds up parts of the same call site and phase, and gives each moment its own. */
void budget_summary_finish(struct budget_summary *summary);

/*
 * The moment whose parts tell best what was held at @moment: itself, or if they are not known the end of
 * its process. NULL: there is none.
 */
const struct budget_moment *budget_summary_parts_of(const struct budget_summary *summary,
						    const struct budget_moment *moment);

/* Reads what `ttmem run --json` has written. 0, or -EINVAL with a reason, or -ENOMEM. */
int budget_summary_load(const char *path, struct budget_summary *ret_summary, char *ret_error,
			size_t size);
