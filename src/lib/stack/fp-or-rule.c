/* SPDX-License-Identifier: Apache-2.0 */

/* The pinned files, sorted by address. */

#include "lib/stack/fp-or-rule.h"

#include "base/bits.h"

struct fp_or_rule_range {
	uintptr_t low;
	uintptr_t high;
};

static struct fp_or_rule_range fp_or_rule_ranges[FP_OR_RULE_MAX];
static uint32_t fp_or_rule_count;
static uint32_t fp_or_rule_changes; /* odd = being changed */

uint32_t fp_or_rule_version(void)
{
	return __atomic_load_n(&fp_or_rule_changes, __ATOMIC_ACQUIRE);
}

static uintptr_t fp_or_rule_load(const uintptr_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE); /* the version is read afterwards */
}

/* How many are entirely below @address. */
static uint32_t fp_or_rule_below(uintptr_t address)
{
	uint32_t low = 0;
	uint32_t high = __atomic_load_n(&fp_or_rule_count, __ATOMIC_ACQUIRE);

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (fp_or_rule_load(&fp_or_rule_ranges[middle].high) < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void fp_or_rule_look(uintptr_t address, struct fp_or_rule_window *ret_window)
{
	uint32_t count = __atomic_load_n(&fp_or_rule_count, __ATOMIC_ACQUIRE);
	uint32_t at = fp_or_rule_below(address);
	uintptr_t next = at < count ? fp_or_rule_load(&fp_or_rule_ranges[at].low) : UINTPTR_MAX;

	if (address > next)
		*ret_window = (struct fp_or_rule_window){
			next + 1, fp_or_rule_load(&fp_or_rule_ranges[at].high), .by_rule = true};
	else
		*ret_window = (struct fp_or_rule_window){
			at > 0 ? fp_or_rule_load(&fp_or_rule_ranges[at - 1].high) + 1 : 0, next,
			false};
}

static void fp_or_rule_store(uint32_t at, struct fp_or_rule_range range)
{
	/* Release: after the odd version. */
	__atomic_store_n(&fp_or_rule_ranges[at].low, range.low, __ATOMIC_RELEASE);
	__atomic_store_n(&fp_or_rule_ranges[at].high, range.high, __ATOMIC_RELEASE);
}

static void fp_or_rule_begin(void)
{
	__atomic_store_n(&fp_or_rule_changes, fp_or_rule_changes | 1, __ATOMIC_RELAXED);
}

static void fp_or_rule_end(uint32_t count)
{
	__atomic_store_n(&fp_or_rule_count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&fp_or_rule_changes, fp_or_rule_changes + 1, __ATOMIC_RELEASE);
}

void fp_or_rule_pin(uintptr_t low, uintptr_t high)
{
	struct fp_or_rule_window window;
	uint32_t at;

	fp_or_rule_look(low + 1, &window);
	if (window.by_rule)
		return;
	fp_or_rule_begin();
	if (fp_or_rule_count == FP_OR_RULE_MAX) {
		fp_or_rule_store(0, (struct fp_or_rule_range){0, UINTPTR_MAX});
		fp_or_rule_end(1);
		return;
	}
	at = fp_or_rule_below(low + 1);
	for (uint32_t i = fp_or_rule_count; i > at; i--)
		fp_or_rule_store(i, fp_or_rule_ranges[i - 1]);
	fp_or_rule_store(at, (struct fp_or_rule_range){low, high});
	fp_or_rule_end(fp_or_rule_count + 1);
}

void fp_or_rule_forget(void)
{
	fp_or_rule_begin();
	fp_or_rule_end(0);
}
