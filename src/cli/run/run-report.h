/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verdict of `ttmem run`: what was left, by call site, compared with what is known and ignored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "model/sites/group.h"

struct baseline;
struct budget_result;
struct family;
struct site_rows;

#define REPORT_LABEL 4096u /* room for a type and a name, or a phase */
#define REPORT_KEY (REPORT_LABEL + TEXT_CLEAN_SIZE(POOL_TEXT_MAX))

/*
 * A call site: a type and a stack. In a baseline only its calls count, because lines move from build to
 * build. Without calls the name without its numbers, or the phase, is in their place.
 */
struct report_site {
	struct group_list sum;    /* one group, with its names */
	struct group_list stacks; /* largest first; without a stack: one group that has none */
	const char *calls;        /* "" = no stack */
	bool known;               /* in the baseline, with at least as many bytes */
};

struct report {
	const struct family *family;
	char **argv;
	uint64_t duration_ns;

	struct report_site *sites; /* leaks, largest first, without ignored types */
	size_t site_count;
	char **calls; /* of all their stacks */
	size_t call_count;
	uint64_t leaked_bytes; /* all of them */
	uint64_t leaked_buffers;
	uint64_t new_bytes; /* those not in the baseline */
	uint64_t new_buffers;
	uint64_t ignored_buffers;
	uint64_t held_bytes; /* live when their device was closed, if that was asked for */
	uint64_t held_buffers;
	struct baseline *baseline;          /* may be NULL; not owned */
	const struct budget_result *limits; /* set by the caller; there may be none in it */
	bool has_shim;                      /* set by the caller: --metal was given */
	bool is_tracked; /* a process had a book; if not, there was nothing to check */
};

/* @ignored: a bit for each type. @baseline may be NULL. */
void report_init(struct report *report, const struct family *family, uint32_t ignored,
		 struct baseline *baseline);
void report_deinit(struct report *report);

void report_text(const struct report *report, FILE *out);
void report_markdown(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);

/* The lines of code of its sites, in their order; the caller deinits them. */
void report_rows(const struct report *report, struct site_rows *ret_rows);

/* What is new, a line for each call site; "" if nothing is. The caller frees it; NULL = out of memory. */
char *report_leak_lines(const struct report *report);

/* An annotation of GitHub for each new leak, at its line of code. */
void report_github(const struct report *report, FILE *out);

static inline const struct call_site *report_group(const struct report_site *site)
{
	return site->sum.groups;
}

/* The whole call site, as written into a report and looked up in a baseline. */
const char *report_key(const struct report_site *site, char *buffer, size_t size);

/* The same for a type and calls. */
const char *report_calls_key(const char *type, const char *calls, char *buffer, size_t size);

/* Buffers without a stack: a type, and the name without its numbers, or else the phase. */
const char *report_label(const char *type, const char *name, const char *phase, char *buffer,
			 size_t size);

/* A device and a type, to look up a peak in a baseline. */
#define REPORT_PEAK_KEY 64u
const char *report_peak_key(uint32_t device, const char *type, char *buffer, size_t size);

/* Leaks and peaks of an earlier run, as `ttmem run --json` wrote them. */
int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size);
void baseline_free(struct baseline *baseline);

/* How many bytes the baseline has of something, 0 if none. */
enum baseline_what {
	BASELINE_SITES,  /* by report_calls_key() */
	BASELINE_BARE,   /* by report_label(), without calls */
	BASELINE_LABELS, /* by report_label(), all */
	BASELINE_PEAKS,  /* by report_peak_key() */
	BASELINE_LEAKED, /* all leaks, by "" */
	BASELINE_WHATS,
};

uint64_t baseline_bytes(struct baseline *baseline, enum baseline_what what, const char *key);

/* An empty one, and more bytes of something; the sum saturates. */
struct baseline *baseline_new(void);
void baseline_add(struct baseline *baseline, enum baseline_what what, const char *key,
		  uint64_t bytes);
