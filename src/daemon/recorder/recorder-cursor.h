/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a page of the history ended, as a text that is opaque to clients. */

#include <stddef.h>

struct emit;
struct store_cursor;

#define RECORDER_CURSOR_SIZE 48 /* two numbers of 16 digits and what is between */

/* NULL if there is no next page. Returns @ret_text. */
const char *recorder_cursor_write(const struct store_cursor *cursor,
				  char ret_text[RECORDER_CURSOR_SIZE]);

/* NULL and "" are the first page. 0 or -EINVAL. */
int recorder_cursor_read(const char *text, struct store_cursor *ret_cursor);

/*
 * The end of a document that is a page: whether it is exact, where the next one begins, notes. @totals_only: of so
 * many processes in it no buffers are known.
 */
void recorder_cursor_end(struct emit *json, const struct store_cursor *next, size_t totals_only);
