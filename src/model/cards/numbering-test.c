/* SPDX-License-Identifier: Apache-2.0 */

/* TT_VISIBLE_DEVICES as UMD reads it, and the versions of UMD. join-test.c has what follows from them. */

#include "model/cards/numbering.h"

#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"

UNIT(the_environment_is_read_as_umd_reads_it)
{
	static const struct {
		const char *list;
		bool is_accepted;
		uint32_t cards; /* bit n: node n */
	} cases[] = {
		{"0", true, 0x2},        {"2", true, 0x1},
		{"0,2", true, 0x3},      {"2,0", true, 0x3},
		{" 1 ,\t1,", true, 0x4}, {"0000:03:00.0", true, 0x1},
		{"03:00", true, 0x1},    {"0000:0", true, 0x7},
		{"00.0,0", true, 0x7},   {"", true, 0},
		{"3", false, 0},         {"-1", false, 0},
		{"x", false, 0},         {"0000:07:00.0", false, 0},
		{"0,c:g", false, 0},     {"0000000000000000000000000000000000000000", false, 0},
	};
	static const char *const buses[] = {"0000:03:00.0", "0000:01:00.0", "0000:02:00.0"};
	uint32_t all[3] = {0, 1, 2}, found[3];
	struct numbering sorted = {.cards = all, .count = 3};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	for (uint32_t i = 0; i < 3; i++) {
		struct snapshot_card card = {.number = i, .bus = buses[i]};

		assert(snapshot_add_card(snapshot, &card) == 0);
	}
	assert(numbering_sort(snapshot, NUMBERING_BUS, &sorted) == NUMBERING_BUS);
	assert(all[0] == 1 && all[1] == 2 && all[2] == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct numbering visible = {.cards = found};
		uint32_t cards = 0;

		assert(numbering_visible(snapshot, &sorted, cases[i].list, &visible) ==
		       cases[i].is_accepted);
		for (size_t k = 0; cases[i].is_accepted && k < visible.count; k++)
			cards |= UINT32_C(1) << found[k];
		assert(cards == cases[i].cards);
	}
	snapshot_free(snapshot);
}

UNIT(a_version_is_read_from_the_name_of_the_library)
{
	assert(numbering_parse_version("/opt/lib/libtt-umd.so.0.9.4") ==
	       NUMBERING_VERSION(0, 9, 4));
	assert(numbering_parse_version("/lib/libtt-umd.so.1.12.0 (deleted)") ==
	       NUMBERING_VERSION(1, 12, 0));
	assert(numbering_parse_version("/lib/libtt-umd.so.0") == 0);
	assert(numbering_parse_version("/lib/libtt-umd.so") == 0);
	assert(numbering_parse_version("/lib/libtt-umd.so.0.9.4000") == 0);
	assert(numbering_parse_version("/lib/libc.so.6") == 0);
	assert(numbering_parse_version("libtt-umd.so.0.9.4") == 0);
	assert(numbering_order(0) == NUMBERING_BUS);
	assert(numbering_order(NUMBERING_VERSION(0, 9, 2)) == NUMBERING_BUS);
	assert(numbering_order(NUMBERING_VERSION(0, 9, 1)) == NUMBERING_ASIC);
}
