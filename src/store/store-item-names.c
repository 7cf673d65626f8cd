/* SPDX-License-Identifier: Apache-2.0 */

/* Counting names. */

#include "store/store-item-names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "model/merge.h"
#include "store/store-item.h"

#define STORE_NAMES_FIRST 256u /* slots */

static struct store_name *store_names_slot(const struct store_names *names, uint32_t group,
					   const char *name)
{
	uint64_t at = hash_fold((uintptr_t)name ^ HASH_K0, HASH_K1 + group);

	for (;; at++) {
		struct store_name *slot = &names->slots[at & (names->capacity - 1)];

		if (slot->group == 0 || (slot->group == group && slot->name == name))
			return slot;
	}
}

/* Makes room for one more: at most half of the slots are used. False: no memory. */
static bool store_names_grow(struct store_names *names)
{
	struct store_names larger = {.count = names->count};

	if (names->capacity > 2 * names->count)
		return true;
	larger.capacity = names->capacity ? 2 * names->capacity : STORE_NAMES_FIRST;
	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < names->capacity; i++) {
		const struct store_name *slot = &names->slots[i];

		if (slot->group)
			*store_names_slot(&larger, slot->group, slot->name) = *slot;
	}
	free(names->slots);
	*names = larger;
	return true;
}

void store_names_add(struct store_names *names, uint32_t group, const char *name, uint64_t bytes)
{
	struct store_name *slot;

	if (!store_names_grow(names))
		return;
	slot = store_names_slot(names, group, name);
	if (slot->group == 0) {
		if (names->count == STORE_NAMES_GROUPED)
			return;
		names->count++;
		*slot = (struct store_name){.group = group, .name = name};
	}
	slot->bytes = merge_add(slot->bytes, bytes);
	slot->buffers++;
}

/* Largest first; then by name, so that the same state always has the same list. */
static bool store_names_precedes(const struct store_name *a, const struct store_name *b)
{
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	if (a->buffers != b->buffers)
		return a->buffers > b->buffers;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "") < 0;
}

static void store_names_insert(struct store_names_top *top, const struct store_name *name)
{
	uint32_t at = top->listed;

	top->count++;
	if (at == STORE_NAMES_MAX) {
		if (!store_names_precedes(name, top->largest[at - 1]))
			return;
		at--;
	} else {
		top->listed++;
	}
	for (; at > 0 && store_names_precedes(name, top->largest[at - 1]); at--)
		top->largest[at] = top->largest[at - 1];
	top->largest[at] = name;
}

struct store_names_top *store_names_rank(const struct store_names *names, size_t groups)
{
	struct store_names_top *tops = calloc(groups + 1, sizeof(*tops));

	for (size_t i = 0; tops && i < names->capacity; i++) {
		const struct store_name *slot = &names->slots[i];

		if (slot->group)
			store_names_insert(&tops[slot->group - 1], slot);
	}
	return tops;
}

int store_names_text(const struct store_names_top *top, struct store_item *item, uint32_t *ret_at)
{
	char text[STORE_NAMES_TEXT];
	size_t used = 0;

	for (uint32_t i = 0; i < top->listed; i++) {
		const struct store_name *name = top->largest[i];
		char *to = text + used;
		int n = snprintf(to, sizeof(text) - used, "%" PRIu64 " %" PRIu64 " %s", name->bytes,
				 name->buffers, name->name ? name->name : "");

		if (n < 0 || (size_t)n + 1 >= sizeof(text) - used)
			continue;
		for (char *at = to; (at = strchr(at, STORE_PARTS_SEPARATOR));)
			*at = '?';
		to[n] = STORE_PARTS_SEPARATOR;
		used += (size_t)n + 1;
	}
	if (used == 0)
		return store_item_add_text(item, NULL, ret_at);
	return store_item_add_long_text(item, text, used - 1, ret_at);
}

void store_names_deinit(struct store_names *names)
{
	free(names->slots);
	*names = (struct store_names){.slots = NULL};
}
