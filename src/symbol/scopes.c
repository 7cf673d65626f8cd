/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the function by address, then reads only the entries inside it. */

#include "symbol/scopes.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"

#define SCOPES_BACK 8u /* functions that may overlap: nested or folded ones */

void scopes_deinit(struct scopes *scopes)
{
	for (size_t i = 0; i < SCOPES_UNITS; i++)
		free(scopes->units[i].list);
	*scopes = (struct scopes){.next = 0};
}

/* Out of memory, the function is left out. */
static void scopes_add(struct scopes_unit *unit, Dwarf_Die *function)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(function, at, &base, &low, &high)) > 0) {
		struct scopes_function *list;

		if (low >= high || unit->count >= SCOPES_FUNCTIONS_MAX)
			continue;
		list = array_grow(unit->list, &unit->capacity, unit->count + 1, sizeof(*list));
		if (!list)
			return;
		unit->list = list;
		list[unit->count++] = (struct scopes_function){
			.low = low,
			.high = high,
			.entry = dwarf_dieoffset(function),
		};
	}
}

/* @steps: how many entries may still be read; a crafted file may contain cycles. */
static void scopes_collect(struct scopes_unit *unit, Dwarf_Die *parent, uint32_t depth,
			   uint32_t *steps)
{
	Dwarf_Die entry;
	int r = dwarf_child(parent, &entry);

	for (; r == 0 && *steps > 0; r = dwarf_siblingof(&entry, &entry)) {
		int tag = dwarf_tag(&entry);

		(*steps)--;
		if (tag == DW_TAG_subprogram)
			scopes_add(unit, &entry);
		else if (tag == DW_TAG_namespace && depth < SCOPES_DEPTH_MAX)
			scopes_collect(unit, &entry, depth + 1, steps);
	}
}

static int scopes_compare(const void *left, const void *right)
{
	const struct scopes_function *a = left, *b = right;

	if (a->low != b->low)
		return bits_compare(a->low, b->low);
	return bits_compare(a->entry, b->entry);
}

static struct scopes_unit *scopes_unit(struct scopes *scopes, Dwarf_Die *die)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
	Dwarf_Off entry = dwarf_dieoffset(die);
	uint32_t steps = SCOPES_STEPS_MAX;
	struct scopes_unit *unit;

	for (size_t i = 0; i < SCOPES_UNITS; i++) {
		unit = &scopes->units[i];
		if (unit->dwarf == dwarf && unit->entry == entry)
			return unit;
	}
	unit = &scopes->units[scopes->next++ % SCOPES_UNITS];
	free(unit->list);
	*unit = (struct scopes_unit){.dwarf = dwarf, .entry = entry};
	scopes_collect(unit, die, 0, &steps);
	if (unit->count > 0)
		qsort(unit->list, unit->count, sizeof(*unit->list), scopes_compare);
	return unit;
}

static bool scopes_function(const struct scopes_unit *unit, uint64_t address,
			    Dwarf_Die *ret_function)
{
	size_t from = 0, to = unit->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (unit->list[middle].low <= address)
			from = middle + 1;
		else
			to = middle;
	}
	for (size_t i = 0; i < SCOPES_BACK && from > 0; i++) {
		const struct scopes_function *function = &unit->list[--from];

		if (address < function->high)
			return dwarf_offdie(unit->dwarf, function->entry, ret_function) != NULL;
	}
	return false;
}

/* The scope inside @scope that contains the address; false: none. */
static bool scopes_inside(Dwarf_Die *scope, uint64_t address, uint32_t *steps, Dwarf_Die *ret_inner)
{
	Dwarf_Die entry;
	int r = dwarf_child(scope, &entry);

	for (; r == 0 && *steps > 0; r = dwarf_siblingof(&entry, &entry)) {
		int tag = dwarf_tag(&entry);

		(*steps)--;
		if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&entry, address) > 0) {
			*ret_inner = entry;
			return true;
		}
	}
	return false;
}

size_t scopes_find(struct scopes *scopes, Dwarf_Die *unit, uint64_t address,
		   Dwarf_Die *ret_functions, size_t max)
{
	Dwarf_Die found[SCOPES_DEPTH_MAX], scope, inner;
	uint32_t steps = SCOPES_STEPS_MAX;
	size_t n = 0, count;

	if (!scopes_function(scopes_unit(scopes, unit), address, &scope))
		return 0;
	found[n++] = scope;
	while (n < SCOPES_DEPTH_MAX && scopes_inside(&scope, address, &steps, &inner)) {
		scope = inner;
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			found[n++] = scope;
	}
	count = bits_min(n, max);
	for (size_t i = 0; i < count; i++)
		ret_functions[i] = found[n - 1 - i];
	return count;
}
