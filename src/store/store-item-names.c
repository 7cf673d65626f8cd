/* SPDX-License-Identifier: Apache-2.0 */

/* Counting names. */

#include "store/store-item-names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/merge.h"
#include "store/store-item.h"

void store_names_add(struct store_names *names, uint32_t group, const char *name, uint64_t bytes)
{
	uint32_t before = names->numbers.count;
	uint32_t number = map_find(&names->numbers, (uintptr_t)name, group);
	struct store_name *list;

	if (!number) {
		list = array_grow(names->list, &names->capacity, (size_t)before + 1, sizeof(*list));
		if (list)
			names->list = list;
		if (!list || before == STORE_NAMES_GROUPED ||
		    map_add(&names->numbers, (uintptr_t)name, group, &number) < 0)
			return;
		list[before] = (struct store_name){.group = group, .name = name};
	}
	list = &names->list[number - 1];
	list->bytes = merge_add(list->bytes, bytes);
	list->buffers++;
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

	for (size_t i = 0; tops && i < names->numbers.count; i++)
		store_names_insert(&tops[names->list[i].group - 1], &names->list[i]);
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
	map_deinit(&names->numbers);
	free(names->list);
	*names = (struct store_names){.list = NULL};
}
