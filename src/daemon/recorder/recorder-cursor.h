/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a page of the history ended, as a text that is opaque to clients. */

#include <stddef.h>
#include <stdint.h>

struct store_cursor;

#define RECORDER_CURSOR_SIZE 48 /* two numbers of 16 digits and what is between */

/* NULL if there is no next page. Returns @ret_text. */
const char *recorder_cursor_write(const struct store_cursor *cursor,
				  char ret_text[RECORDER_CURSOR_SIZE]);

/* NULL and "" are the first page. 0 or -EINVAL. */
int recorder_cursor_read(const char *text, struct store_cursor *ret_cursor);

#define RECORDER_MISSING_TOLD 8u

/* What the processes of a page have lost. */
struct recorder_missing {
	size_t totals_only; /* processes of which no buffers are known */
	size_t sites;       /* processes of which not all call sites are listed */
	size_t lists;       /* processes of which not all buffers are listed; the first of them: */
	struct recorder_missing_list {
		uint32_t pid;
		uint64_t listed, buffers;
	} told[RECORDER_MISSING_TOLD];
};

/* What people should know of it, for the document. */
struct recorder_notes {
	const char *texts[RECORDER_MISSING_TOLD + 3];
	size_t count;

	/* Private. */
	char room[RECORDER_MISSING_TOLD + 3][192];
};

void recorder_cursor_notes(const struct recorder_missing *missing, struct recorder_notes *notes);
