/* SPDX-License-Identifier: Apache-2.0 */

/* Pinned files: which addresses belong to them, exactly, and which are between them. */

#include "lib/stack/fp-or-rule.h"

#include "base/unit.h"

static bool pick_goes_by_rule(uintptr_t address)
{
	struct pick_window window;

	pick_look(address, &window);
	assert(pick_covers(&window, address));
	return window.by_rule;
}

UNIT(nothing_is_pinned_at_first)
{
	struct pick_window window;

	pick_look(4096, &window);
	assert(!window.by_rule && window.low == 0 && window.high == UINTPTR_MAX);
	assert(!pick_goes_by_rule(0) && !pick_goes_by_rule(UINTPTR_MAX));
	window = PICK_WINDOW_NULL;
	assert(!pick_covers(&window, 0) && !pick_covers(&window, 1));
}

UNIT(a_file_is_pinned_to_its_last_address)
{
	struct pick_window window;

	/* Adjacent, and not added in order. */
	pick_pin(0x3000, 0x4000);
	pick_pin(0x1000, 0x2000);
	pick_pin(0x4000, 0x5000);
	assert(!pick_goes_by_rule(0x1000) && pick_goes_by_rule(0x1001));
	assert(pick_goes_by_rule(0x2000) && !pick_goes_by_rule(0x2001));
	assert(!pick_goes_by_rule(0x3000) && pick_goes_by_rule(0x3001));
	assert(pick_goes_by_rule(0x4000) && pick_goes_by_rule(0x4001));
	assert(pick_goes_by_rule(0x5000) && !pick_goes_by_rule(0x5001));
	pick_look(0x2800, &window);
	assert(window.low == 0x2001 && window.high == 0x3000);
	pick_look(0x1800, &window);
	assert(window.low == 0x1001 && window.high == 0x2000);
	pick_look(0x9000, &window);
	assert(window.low == 0x5001 && window.high == UINTPTR_MAX);
}

UNIT(a_change_is_told)
{
	uint32_t before = pick_version();

	assert(before % 2 == 0);
	pick_pin(0x1000, 0x2000);
	assert(pick_version() != before && pick_version() % 2 == 0);
	before = pick_version();
	pick_pin(0x1000, 0x2000); /* already pinned */
	assert(pick_version() == before);
	pick_forget();
	assert(pick_version() != before && !pick_goes_by_rule(0x1800));
}

UNIT(with_too_many_everything_goes_by_rule)
{
	for (uintptr_t i = 0; i < PICK_MAX; i++)
		pick_pin((2 * i + 1) * 0x1000, (2 * i + 2) * 0x1000);
	for (uintptr_t i = 0; i < PICK_MAX; i++) {
		assert(pick_goes_by_rule((2 * i + 1) * 0x1000 + 8));
		assert(!pick_goes_by_rule((2 * i + 2) * 0x1000 + 8));
	}
	pick_pin(0x10000000, 0x20000000);
	assert(pick_goes_by_rule(0x2008) && pick_goes_by_rule(1) && pick_goes_by_rule(UINTPTR_MAX));
	pick_pin(0x30000000, 0x40000000);
	assert(pick_goes_by_rule(0x2008));
}
