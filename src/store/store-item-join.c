/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Incidents of one call site in one process are one item while they wait: the newest, whose details
 * are the ones that will be kept, with a short row for each of the others. Together they are written
 * as if they had come one after another.
 */

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "model/sites/name-stem.h"
#include "model/types.h"
#include "store/store-item.h"

const struct store_item_party *store_item_caller(const struct store_item *item)
{
	/* Whoever closes a device does nothing wrong: who did not free is told. */
	if (strcmp(store_item_text(item, item->incident_kind), TYPES_HELD_AT_CLOSE) == 0)
		return &item->first;
	return item->second.stack ? &item->second : &item->first;
}

/* Without a stack: the text that the site goes by. */
static const char *store_item_word(const struct store_item *item)
{
	const uint32_t words[] = {item->first.name, item->second.name, item->first.phase,
				  item->second.phase};
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(words) && !words[i])
		i++;
	return store_item_text(item, words[i]);
}

/* The stack of a living process may get its names only later: its key is the same then. */
static int64_t store_item_what(const struct store_item *item)
{
	const struct store_item_party *caller = store_item_caller(item);
	const char *text =
		caller->stack ? store_item_text(item, caller->stack) : store_item_word(item);
	uint64_t what = caller->stack ? caller->party.stack_key : 0;

	if (!what)
		what = hash_bytes(text, strlen(text));
	/* Allocators hand out the same addresses. */
	if (item->incident.space)
		what = hash_u64(what ^ item->incident.space);
	return (int64_t)((what & INT64_MAX) | 1); /* not 0 */
}

/* As store-record.c finds the call site; other sites of the process have other keys. */
static uint64_t store_item_site_key(const struct store_item *item)
{
	const struct store_item_party *caller = store_item_caller(item);
	uint32_t name = item->first.name ? item->first.name : item->second.name;
	uint32_t phase = name ? 0 : item->first.phase ? item->first.phase : item->second.phase;
	const char *kind = store_item_text(item, item->incident_kind);
	const char *text = store_item_text(item, caller->stack ? caller->stack : phase);
	const uint64_t parts[] = {
		hash_bytes(kind, strlen(kind)),
		item->incident.type,
		hash_bytes(text, strlen(text)),
		caller->stack ? caller->party.stack_key
			      : (name ? name_stem_hash(store_item_text(item, name)) : 0),
	};

	return hash_bytes(parts, sizeof(parts));
}

void store_item_set_site(struct store_item *item)
{
	item->site_key = store_item_site_key(item);
	item->first_ns = item->incident.time_ns;
}

bool store_item_is_joinable(const struct store_item *item, const struct store_item *to)
{
	const struct store_item_process *a = &item->processes[0], *b = &to->processes[0];

	return to->kind == STORE_ITEM_INCIDENT && item->site_key == to->site_key &&
	       process_id_equal(a->id, b->id) && a->uid == b->uid &&
	       to->repeat_count < STORE_REPEATS_MAX;
}

struct store_repeat store_item_repeat(const struct store_item *item)
{
	return (struct store_repeat){
		.device = item->incident.device,
		.address = item->incident.has_address ? item->incident.address : 0,
		.size = item->incident.size,
		.count = item->incident.count,
		.what = store_item_what(item),
	};
}

static bool store_item_is_same(const struct store_repeat *a, const struct store_repeat *b)
{
	return a->device == b->device && a->address == b->address && a->size == b->size &&
	       a->what == b->what;
}

int store_item_join(struct store_item *item, struct store_item *old)
{
	const struct store_repeat self = store_item_repeat(item), before = store_item_repeat(old);
	struct store_repeat *repeats = array_grow(old->repeats, &old->repeat_capacity,
						  old->repeat_count + 1, sizeof(*repeats));
	size_t count = 0;

	if (!repeats)
		return -1;
	repeats[old->repeat_count] = before;
	for (size_t i = 0; i <= old->repeat_count; i++) {
		/* Its newest count is in the item itself. */
		if (!store_item_is_same(&repeats[i], &self))
			repeats[count++] = repeats[i];
	}
	item->repeats = repeats;
	item->repeat_count = count;
	item->repeat_capacity = old->repeat_capacity;
	item->first_ns = bits_min(item->first_ns, old->first_ns);
	item->time_ns = bits_max(item->time_ns, old->time_ns);
	old->repeats = NULL;
	old->repeat_count = old->repeat_capacity = 0;
	store_item_weigh(item);
	return 0;
}
