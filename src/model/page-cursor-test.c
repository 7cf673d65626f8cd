/* SPDX-License-Identifier: Apache-2.0 */

/* Places survive being text, and nothing else is taken for one. */

#include "model/page-cursor.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

UNIT(cursors_survive_a_round_trip)
{
	const struct place places[] = {
		{0},
		{.pid = 1, .inode = 2, .device = 3, .slot = 4},
		{.pid = UINT32_MAX, .inode = UINT64_MAX, .device = 1023, .slot = 0xffffff},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char text[PLACE_TEXT_SIZE];
		struct place back = {0};

		assert(place_parse(place_format(&places[i], text), &back) == 0);
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
	struct place place = {.pid = 7};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(place_parse(wrong[i], &place) == -EINVAL);
	assert(place.pid == 7);
	assert(place_parse("b.1.2.3.4", &place) == 0);
}

UNIT(books_have_an_order)
{
	const struct place place = {.pid = 5, .inode = 9};

	assert(place_compare_book(&place, 5, 9) == 0);
	assert(place_compare_book(&place, 6, 0) < 0);
	assert(place_compare_book(&place, 4, 99) > 0);
	assert(place_compare_book(&place, 5, 10) < 0);
	assert(place_compare_book(&place, 5, 8) > 0);
}
