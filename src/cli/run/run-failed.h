/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Failed allocations of a family, as the summary tells of them. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct namer;
struct scan_book;
struct view;

struct run_failed {
	uint64_t handled; /* in processes that went on, and ended well */
	uint64_t others;  /* in those that did not, besides the one that is told */
	char *text; /* one paragraph about the last that was not handled; NULL = there is none */
};

/* A process has ended. @is_well: with success, so whatever failed was handled. @view is borrowed. */
void run_failed_add(struct run_failed *failed, struct scan_book *book, struct view *view,
		    struct namer *namer, bool is_well);

void run_failed_put(const struct run_failed *failed, FILE *out);
void run_failed_deinit(struct run_failed *failed);
