/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmem.run/1, which `ttmem run --json` writes, and its rows. Other commands read it again, as far as they need
 * it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/peak.h"
#include "answers/sites.h"
#include "base/pool.h"

struct json_t;

/* What a file is told that is none, by commands that take recordings as well. */
#define RUN_REPORT_NONE "neither a recording nor a report of `ttmem run --json` (ttmem.run/1)"

/* What is live, of a stack and phase. */
struct run_report_part {
	struct call_stack_site site; /* without a module; no text: there is no site */
	const char *name, *phase, *calls;
	uint64_t bytes;
};

struct run_report_peak {
	uint32_t device, type;
	uint64_t bytes;
	bool is_partial;            /* not exact */
	bool has_top;               /* older reports have none; else top may be NULL all the same */
	const struct peak_row *top; /* the process that held the most */
	const struct run_report_part *parts;
	size_t part_count;
};

struct run_report_leak {
	uint32_t type;
	const char *key, *calls, *phase;
	const char *old_site; /* of an older report, which has no calls */
	const struct call_stack_site *site;
	struct site_names names;
	uint64_t bytes, buffers;
	bool is_known; /* in the baseline */
};

/* Only read. */
struct run_report_process {
	uint32_t pid;
	const char *comm, *gave_up;
	bool is_partial;
	const struct buffers_row *buffers;
	size_t buffer_count;
};

struct run_report {
	const char *schema;
	bool is_tracked, says_tracked; /* older reports do not say it */
	bool is_partial;
	uint32_t refused;
	const char *const *command;
	const struct run_report_peak *peaks;
	const struct run_report_leak *leaks;
	const struct run_report_process *processes;
	size_t word_count, peak_count, leak_count, process_count;
	bool has_peaks, has_leaks, has_processes;

	/* Private. */
	struct json_t *document;
	struct pool rows;
};

extern const struct field run_report_part_fields[];
extern const struct field run_report_site_fields[]; /* without its calls */
extern const struct field run_report_leak_fields[]; /* without its stacks, which are only written */

/*
 * Reads a report, which has lists of processes and peaks, each of a device and type that there can be. 0, or
 * -EINVAL with one line for users, which is safe for a terminal. run_report_unload() frees it.
 */
int run_report_load(const char *path, struct run_report *ret_report, char *ret_why, size_t size);

/* The same for any JSON, which may have anything. @otherwise: what to say of a file that is none. */
int run_report_read(const char *path, const char *otherwise, struct run_report *ret_report,
		    char *ret_why, size_t size);

bool run_report_is_one(const struct run_report *report); /* by its schema */
void run_report_unload(struct run_report *report);
