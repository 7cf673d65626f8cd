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
#include "model/group.h"

struct family;

#define REPORT_LABEL 4096u /* room for a type and a name, or a phase */
#define REPORT_KEY (REPORT_LABEL + TEXT_CLEAN_SIZE(POOL_TEXT_MAX))

/* Buffers with the same stack. */
struct report_stack {
	struct group group;
	char *calls; /* its frames without line numbers, empty if there is no stack; owned */
};

/* A call site: a type, a name and calls. Its stacks differ only in line numbers. */
struct report_site {
	struct group group;   /* the sums of its stacks */
	const char *calls;    /* of its stacks */
	size_t first, count;  /* its stacks, largest first */
	uint64_t label_bytes; /* of all sites with this type and name */
	bool known;           /* in the baseline, with at least as many bytes */
};

struct report {
	const struct family *family;
	char **argv;
	uint64_t duration_ns;

	struct report_site *sites; /* leaks, largest first, without ignored types */
	size_t site_count;
	struct report_stack *stacks; /* those of one site are adjacent */
	size_t stack_count;
	uint64_t leaked_bytes; /* all of them */
	uint64_t leaked_buffers;
	uint64_t new_bytes; /* those not in the baseline */
	uint64_t new_buffers;
	uint64_t ignored_buffers;
	bool is_tracked; /* a process had a book; if not, there was nothing to check */
};

struct baseline;

/* @ignored: a bit for each type. @baseline may be NULL. 0 or -ENOMEM. */
int report_init(struct report *report, const struct family *family, uint32_t ignored,
		const struct baseline *baseline);
void report_deinit(struct report *report);

void report_text(const struct report *report, FILE *out);
void report_markdown(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);

/* The next stack of a site's buffers, starting at @at (initially 0); NULL = no more. */
const struct group *report_next_stack(const struct report *report, const struct report_site *site,
				      size_t *at);

/* The site's type and name (or phase), for people. */
const char *report_label(const struct report *report, const struct report_site *site, char *buffer,
			 size_t size);

/* The whole call site, as written into a report and looked up in a baseline. */
const char *report_key(const struct report *report, const struct report_site *site, char *buffer,
		       size_t size);

/* Leaks of an earlier run, as `ttmem run --json` wrote them. */
int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size);
void baseline_free(struct baseline *baseline);

/* Bytes that the baseline has for a site, 0 if none. */
uint64_t baseline_bytes(const struct baseline *baseline, const char *key);

/* Bytes that it has for all sites with a type and a name, or a phase if there is no name. */
uint64_t baseline_label_bytes(const struct baseline *baseline, const struct group *label);
