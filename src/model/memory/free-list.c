/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Holes are searched one by one: even a memory that is cut up has far fewer holes than blocks, and
 * being obviously right is worth more here than being fast.
 */

#include "model/memory/free-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"

int free_list_init(struct free_list *list, uint64_t address, uint64_t length)
{
	*list = FREE_LIST_NULL;
	return length ? free_list_give(list, address, length) : 0;
}

void free_list_deinit(struct free_list *list)
{
	free(list->holes);
	*list = FREE_LIST_NULL;
}

/* The number of the hole to take from; the count if there is none. */
static size_t free_list_find(const struct free_list *list, uint64_t length, bool is_top_down,
			     enum free_list_fit fit)
{
	size_t found = list->count;

	for (size_t i = 0; i < list->count; i++) {
		size_t at = is_top_down ? list->count - 1 - i : i;
		uint64_t room = list->holes[at].length;

		if (room < length)
			continue;
		if (fit == FREE_LIST_FIRST)
			return at;
		if (found == list->count || room < list->holes[found].length)
			found = at;
	}
	return found;
}

static void free_list_remove(struct free_list *list, size_t at)
{
	list->count--;
	memmove(&list->holes[at], &list->holes[at + 1], (list->count - at) * sizeof(*list->holes));
}

bool free_list_take(struct free_list *list, uint64_t length, bool is_top_down,
		    enum free_list_fit fit, uint64_t *ret_address)
{
	size_t at = free_list_find(list, length, is_top_down, fit);
	struct free_list_hole *hole;

	if (at == list->count)
		return false;
	hole = &list->holes[at];
	*ret_address = is_top_down ? hole->address + hole->length - length : hole->address;
	if (!is_top_down)
		hole->address += length;
	hole->length -= length;
	list->free -= length;
	if (hole->length == 0)
		free_list_remove(list, at);
	return true;
}

bool free_list_has(const struct free_list *list, uint64_t length)
{
	return free_list_find(list, length, false, FREE_LIST_FIRST) < list->count;
}

/* The first hole that does not lie below the address. */
static size_t free_list_above(const struct free_list *list, uint64_t address)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->holes[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int free_list_insert(struct free_list *list, size_t at, struct free_list_hole hole)
{
	struct free_list_hole *holes =
		array_grow(list->holes, &list->capacity, list->count + 1, sizeof(*holes));

	if (!holes)
		return -ENOMEM;
	list->holes = holes;
	memmove(&holes[at + 1], &holes[at], (list->count - at) * sizeof(*holes));
	holes[at] = hole;
	list->count++;
	return 0;
}

uint64_t free_list_bottom(const struct free_list *list, uint64_t base)
{
	return list->count > 0 && list->holes[0].address == base ? list->holes[0].length : 0;
}

int free_list_give(struct free_list *list, uint64_t address, uint64_t length)
{
	size_t at = free_list_above(list, address);
	struct free_list_hole *above = at < list->count ? &list->holes[at] : NULL;
	struct free_list_hole *below = at > 0 ? &list->holes[at - 1] : NULL;
	bool meets_below = below && below->address + below->length == address;
	bool meets_above = above && address + length == above->address;

	if (!meets_below && !meets_above) {
		int r = free_list_insert(list, at, (struct free_list_hole){address, length});

		if (r < 0)
			return r;
	} else if (meets_below) {
		below->length += length + (meets_above ? above->length : 0);
		if (meets_above)
			free_list_remove(list, at);
	} else {
		above->address = address;
		above->length += length;
	}
	list->free += length;
	return 0;
}

uint64_t free_list_largest(const struct free_list *list)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < list->count; i++)
		largest = bits_max(largest, list->holes[i].length);
	return largest;
}
