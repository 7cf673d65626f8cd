/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a page of the list of all buffers ended, so that the next one can begin after it. Books are
 * ordered by process and file, devices by number, buffers by slot, and a buffer keeps its slot for
 * life: a walk through all pages returns each buffer that existed all the time exactly once,
 * whatever is allocated and freed meanwhile.
 */

#include <stddef.h>
#include <stdint.h>

struct page_cursor {
	uint32_t pid;
	uint64_t inode; /* of the book */
	uint32_t device;
	uint32_t slot;
};

#define PAGE_CURSOR_TEXT_SIZE 64

/* The form that scripts receive and pass back. Returns @ret_text. */
const char *page_cursor_format(const struct page_cursor *page_cursor, char *ret_text);

/* -EINVAL for text that page_cursor_format() did not write. */
int page_cursor_parse(const char *text, struct page_cursor *ret_place);

/* Less than 0, 0 or greater: which book comes first. */
int page_cursor_compare_book(const struct page_cursor *page_cursor, uint32_t pid, uint64_t inode);
