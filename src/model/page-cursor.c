/* SPDX-License-Identifier: Apache-2.0 */

/* Page cursors as text: four hexadecimal numbers after a letter that says what they describe. */

#include "model/page-cursor.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "book/format/layout.h"

const char *page_cursor_format(const struct page_cursor *page_cursor, char *ret_text)
{
	snprintf(ret_text, PAGE_CURSOR_TEXT_SIZE, "b.%" PRIx32 ".%" PRIx64 ".%" PRIx32 ".%" PRIx32,
		 page_cursor->pid, page_cursor->inode, page_cursor->device, page_cursor->slot);
	return ret_text;
}

/* A number after a dot, lower-case digits only. */
static int page_cursor_parse_number(const char **text, uint64_t max, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;
	unsigned int digits = 0;

	if (*at++ != '.')
		return -EINVAL;
	for (; isdigit((unsigned char)*at) || (*at >= 'a' && *at <= 'f'); at++) {
		if (++digits > 16)
			return -EINVAL;
		number = number << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	}
	if (digits == 0 || number > max)
		return -EINVAL;
	*text = at;
	*ret_number = number;
	return 0;
}

int page_cursor_parse(const char *text, struct page_cursor *ret_place)
{
	uint64_t pid = 0, inode = 0, device = 0, slot = 0;

	if (*text++ != 'b')
		return -EINVAL;
	if (page_cursor_parse_number(&text, UINT32_MAX, &pid) < 0 ||
	    page_cursor_parse_number(&text, UINT64_MAX, &inode) < 0 ||
	    page_cursor_parse_number(&text, BOOK_DEVICES - 1, &device) < 0 ||
	    page_cursor_parse_number(&text, BOOK_SLOTS_MAX - 1, &slot) < 0 || *text)
		return -EINVAL;
	*ret_place = (struct page_cursor){
		.pid = (uint32_t)pid,
		.inode = inode,
		.device = (uint32_t)device,
		.slot = (uint32_t)slot,
	};
	return 0;
}

int page_cursor_compare_book(const struct page_cursor *page_cursor, uint32_t pid, uint64_t inode)
{
	if (page_cursor->pid != pid)
		return bits_compare(page_cursor->pid, pid);
	return bits_compare(page_cursor->inode, inode);
}
