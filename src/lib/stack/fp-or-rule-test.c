/* SPDX-License-Identifier: Apache-2.0 */

/* Pinned files: which addresses belong to them, exactly, and which are between them. */

#include "lib/stack/fp-or-rule.h"

#include "base/testing/unit.h"

static bool fp_or_rule_goes_by_rule(uintptr_t address)
{
	struct fp_or_rule_window window;

	fp_or_rule_look(address, &window);
	assert(fp_or_rule_covers(&window, address));
	return window.by_rule;
}

UNIT(nothing_is_pinned_at_first)
{
	struct fp_or_rule_window window;

	fp_or_rule_look(4096, &window);
	assert(!window.by_rule && window.low == 0 && window.high == UINTPTR_MAX);
	assert(!fp_or_rule_goes_by_rule(0) && !fp_or_rule_goes_by_rule(UINTPTR_MAX));
	window = FP_OR_RULE_WINDOW_NULL;
	assert(!fp_or_rule_covers(&window, 0) && !fp_or_rule_covers(&window, 1));
}

UNIT(a_file_is_pinned_to_its_last_address)
{
	struct fp_or_rule_window window;

	/* Adjacent, and not added in order. */
	fp_or_rule_pin(0x3000, 0x4000);
	fp_or_rule_pin(0x1000, 0x2000);
	fp_or_rule_pin(0x4000, 0x5000);
	assert(!fp_or_rule_goes_by_rule(0x1000) && fp_or_rule_goes_by_rule(0x1001));
	assert(fp_or_rule_goes_by_rule(0x2000) && !fp_or_rule_goes_by_rule(0x2001));
	assert(!fp_or_rule_goes_by_rule(0x3000) && fp_or_rule_goes_by_rule(0x3001));
	assert(fp_or_rule_goes_by_rule(0x4000) && fp_or_rule_goes_by_rule(0x4001));
	assert(fp_or_rule_goes_by_rule(0x5000) && !fp_or_rule_goes_by_rule(0x5001));
	fp_or_rule_look(0x2800, &window);
	assert(window.low == 0x2001 && window.high == 0x3000);
	fp_or_rule_look(0x1800, &window);
	assert(window.low == 0x1001 && window.high == 0x2000);
	fp_or_rule_look(0x9000, &window);
	assert(window.low == 0x5001 && window.high == UINTPTR_MAX);
}

UNIT(a_change_is_told)
{
	uint32_t before = fp_or_rule_version();

	assert(before % 2 == 0);
	fp_or_rule_pin(0x1000, 0x2000);
	assert(fp_or_rule_version() != before && fp_or_rule_version() % 2 == 0);
	before = fp_or_rule_version();
	fp_or_rule_pin(0x1000, 0x2000); /* already pinned */
	assert(fp_or_rule_version() == before);
	fp_or_rule_forget();
	assert(fp_or_rule_version() != before && !fp_or_rule_goes_by_rule(0x1800));
}

UNIT(with_too_many_everything_goes_by_rule)
{
	for (uintptr_t i = 0; i < FP_OR_RULE_MAX; i++)
		fp_or_rule_pin((2 * i + 1) * 0x1000, (2 * i + 2) * 0x1000);
	for (uintptr_t i = 0; i < FP_OR_RULE_MAX; i++) {
		assert(fp_or_rule_goes_by_rule((2 * i + 1) * 0x1000 + 8));
		assert(!fp_or_rule_goes_by_rule((2 * i + 2) * 0x1000 + 8));
	}
	fp_or_rule_pin(0x10000000, 0x20000000);
	assert(fp_or_rule_goes_by_rule(0x2008) && fp_or_rule_goes_by_rule(1) &&
	       fp_or_rule_goes_by_rule(UINTPTR_MAX));
	fp_or_rule_pin(0x30000000, 0x40000000);
	assert(fp_or_rule_goes_by_rule(0x2008));
}
