/* SPDX-License-Identifier: Apache-2.0 */

/* The pinned files, sorted by address. */

#include "lib/stack/fp-or-rule.h"

#include "base/bits.h"

struct pick_range {
	uintptr_t low;
	uintptr_t high;
};

static struct pick_range pick_ranges[PICK_MAX];
static uint32_t pick_count;
static uint32_t pick_changes; /* odd = being changed */

uint32_t pick_version(void)
{
	return __atomic_load_n(&pick_changes, __ATOMIC_ACQUIRE);
}

static uintptr_t pick_load(const uintptr_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE); /* the version is read afterwards */
}

/* How many are entirely below @address. */
static uint32_t pick_below(uintptr_t address)
{
	uint32_t low = 0;
	uint32_t high = __atomic_load_n(&pick_count, __ATOMIC_ACQUIRE);

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (pick_load(&pick_ranges[middle].high) < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void pick_look(uintptr_t address, struct pick_window *ret_window)
{
	uint32_t count = __atomic_load_n(&pick_count, __ATOMIC_ACQUIRE);
	uint32_t at = pick_below(address);
	uintptr_t next = at < count ? pick_load(&pick_ranges[at].low) : UINTPTR_MAX;

	if (address > next)
		*ret_window = (struct pick_window){next + 1, pick_load(&pick_ranges[at].high),
						   .by_rule = true};
	else
		*ret_window = (struct pick_window){
			at > 0 ? pick_load(&pick_ranges[at - 1].high) + 1 : 0, next, false};
}

static void pick_store(uint32_t at, struct pick_range range)
{
	/* Release: after the odd version. */
	__atomic_store_n(&pick_ranges[at].low, range.low, __ATOMIC_RELEASE);
	__atomic_store_n(&pick_ranges[at].high, range.high, __ATOMIC_RELEASE);
}

static void pick_begin(void)
{
	__atomic_store_n(&pick_changes, pick_changes | 1, __ATOMIC_RELAXED);
}

static void pick_end(uint32_t count)
{
	__atomic_store_n(&pick_count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&pick_changes, pick_changes + 1, __ATOMIC_RELEASE);
}

void pick_pin(uintptr_t low, uintptr_t high)
{
	struct pick_window window;
	uint32_t at;

	pick_look(low + 1, &window);
	if (window.by_rule)
		return;
	pick_begin();
	if (pick_count == PICK_MAX) {
		pick_store(0, (struct pick_range){0, UINTPTR_MAX});
		pick_end(1);
		return;
	}
	at = pick_below(low + 1);
	for (uint32_t i = pick_count; i > at; i--)
		pick_store(i, pick_ranges[i - 1]);
	pick_store(at, (struct pick_range){low, high});
	pick_end(pick_count + 1);
}

void pick_forget(void)
{
	pick_begin();
	pick_end(0);
}
