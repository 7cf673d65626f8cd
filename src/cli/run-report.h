/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verdict of `ttmem run`: what was left behind, by call site, against what is known and ignored. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "book/layout.h"
#include "core/group.h"

struct family;

struct report_site {
	struct group group;
	bool known; /* in the baseline, with at least as many bytes */
};

struct report {
	const struct family *family;
	char **argv;
	uint64_t duration_ns;

	struct report_site *sites; /* leaks, largest first, without ignored types */
	size_t site_count;
	struct group *stacks; /* the same by stack, largest first */
	size_t stack_count;
	uint64_t leaked_bytes; /* all of them */
	uint64_t leaked_buffers;
	uint64_t new_bytes; /* those not in the baseline */
	uint64_t new_buffers;
	uint64_t ignored_buffers;
};

struct baseline;

/* @ignored: a bit for each type. @baseline may be NULL. 0 or -ENOMEM. */
int report_init(struct report *report, const struct family *family, uint32_t ignored,
		const struct baseline *baseline);
void report_deinit(struct report *report);

void report_text(const struct report *report, FILE *out);
void report_markdown(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);

/* The next stack of a site's buffers, from @at (0 in the beginning) on; NULL = no more. */
const struct group *report_next_stack(const struct report *report, const struct report_site *site,
				      size_t *at);

/* What the sites' key is made of: the same in the report and in a baseline. */
const char *report_key(const struct report *report, const struct report_site *site, char *buffer,
		       size_t size);

/* Leaks of an earlier run, as `ttmem run --json` wrote them. */
int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size);
void baseline_free(struct baseline *baseline);

/* Bytes that the baseline has for a site, 0 if it does not have it. */
uint64_t baseline_bytes(const struct baseline *baseline, const char *key);
