/* SPDX-License-Identifier: Apache-2.0 */

/* Page cursors survive the conversion to text, and no other text is accepted. */

#include "model/page-cursor.h"

#include <errno.h>
#include <string.h>

#include "base/testing/unit.h"

UNIT(cursors_survive_a_round_trip)
{
	const struct page_cursor places[] = {
		{0},
		{.pid = 1, .inode = 2, .device = 3, .slot = 4},
		{.pid = UINT32_MAX, .inode = UINT64_MAX, .device = 1023, .slot = 0xffffff},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char text[PAGE_CURSOR_TEXT_SIZE];
		struct page_cursor back = {0};

		assert(page_cursor_parse(page_cursor_format(&places[i], text), &back) == 0);
		assert(back.pid == places[i].pid && back.inode == places[i].inode);
		assert(back.device == places[i].device && back.slot == places[i].slot);
	}
}

UNIT(invalid_cursors_are_refused)
{
	static const char *const wrong[] = {
		"",
		"b",
		"b.1.2.3",
		"b.1.2.3.4.5",
		"b.1.2.3.4 ",
		"c.1.2.3.4",
		"b.1.2..4",
		"b.1.2.3.A",
		"b.1.2.3.-4",
		"b.100000000.2.3.4",
		"b.1.10000000000000000.3.4",
		"b.1.2.400.4",
		"b.1.2.3.1000000",
	};
	struct page_cursor page_cursor = {.pid = 7};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(page_cursor_parse(wrong[i], &page_cursor) == -EINVAL);
	assert(page_cursor.pid == 7);
	assert(page_cursor_parse("b.1.2.3.4", &page_cursor) == 0);
}

UNIT(books_have_an_order)
{
	const struct page_cursor page_cursor = {.pid = 5, .inode = 9};

	assert(page_cursor_compare_book(&page_cursor, 5, 9) == 0);
	assert(page_cursor_compare_book(&page_cursor, 6, 0) < 0);
	assert(page_cursor_compare_book(&page_cursor, 4, 99) > 0);
	assert(page_cursor_compare_book(&page_cursor, 5, 10) < 0);
	assert(page_cursor_compare_book(&page_cursor, 5, 8) > 0);
}
