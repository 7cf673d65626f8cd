/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a page of the list of all buffers ended, so that the next one can begin behind it. Books are in
 * order of their process and file, devices in order of their numbers, buffers in order of their slots,
 * and a buffer keeps its slot for life: whoever walks all pages sees each buffer that was there all the
 * time exactly once, whatever comes and goes meanwhile.
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

/* As scripts see it, and give it back. Returns @ret_text. */
const char *page_cursor_format(const struct page_cursor *page_cursor, char *ret_text);

/* -EINVAL for what page_cursor_format() did not write. */
int page_cursor_parse(const char *text, struct page_cursor *ret_place);

/* Less than 0, 0 or more: which book comes first. */
int page_cursor_compare_book(const struct page_cursor *page_cursor, uint32_t pid, uint64_t inode);
