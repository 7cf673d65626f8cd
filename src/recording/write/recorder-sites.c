/* SPDX-License-Identifier: Apache-2.0 */

/* Sums by call site. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "book/format/event.h"
#include "recording/write/recorder-private.h"

#define SITES_FIRST 256u

/*
 * A book can name more stacks than it has: what is beyond goes to the stack that means none. These take
 * some 60 MiB.
 */
#define SITES_MAX 200000u

/* By a number that no owner knows: others wait for who reads a book whose call sites all collide. */
static uint32_t *sites_place(const struct recorder_sites *sites, uint32_t stack, uint32_t type)
{
	uint64_t hash = hash_u64(((uint64_t)stack << 3 | type) ^ sites->seed);

	for (uint32_t i = (uint32_t)hash;; i++) {
		uint32_t *place = &sites->places[i & sites->mask];

		if (*place == 0 || (sites->sites[*place - 1].stack == stack &&
				    sites->sites[*place - 1].type == type))
			return place;
	}
}

static int sites_spread(struct recorder_sites *sites)
{
	uint32_t size = sites->places ? (sites->mask + 1) * 2 : SITES_FIRST;
	uint32_t *places = size ? calloc(size, sizeof(*places)) : NULL;

	if (!places)
		return -ENOMEM;
	if (!sites->seed)
		sites->seed = hash_seed(places);
	free(sites->places);
	sites->places = places;
	sites->mask = size - 1;
	for (size_t i = 0; i < sites->count; i++)
		*sites_place(sites, sites->sites[i].stack, sites->sites[i].type) = (uint32_t)i + 1;
	return 0;
}

/* NULL = out of memory. */
static struct recording_site *sites_get(struct recorder_sites *sites, uint32_t stack, uint32_t type)
{
	struct recording_site *grown;
	uint32_t *place;

	if (sites->count * 2 >= (sites->places ? sites->mask + 1 : 0) && sites_spread(sites) < 0)
		return NULL;
	place = sites_place(sites, stack, type);
	if (unlikely(*place == 0 && sites->count >= SITES_MAX)) {
		stack = 0;
		place = sites_place(sites, stack, type);
	}
	if (likely(*place))
		return &sites->sites[*place - 1];
	grown = array_grow(sites->sites, &sites->capacity, sites->count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	sites->sites = grown;
	grown += sites->count++;
	*grown = (struct recording_site){.stack = stack, .type = type};
	*place = (uint32_t)sites->count;
	return grown;
}

static void sites_free(struct recording_site *site, const struct book_event *event,
		       double ns_per_stamp)
{
	uint64_t bytes = event_bytes(&event->record);
	uint64_t stamps = event->time > event->record.birth ? event->time - event->record.birth : 0;
	uint64_t life = (uint64_t)((double)stamps * ns_per_stamp) >> 10;
	uint32_t length = life ? 64 - (uint32_t)__builtin_clzll(life) : 0;

	site->frees++;
	site->free_bytes += bytes;
	site->live_bytes -= bits_min(bytes, site->live_bytes);
	site->lives[bits_min(length, RECORDING_LIVES - 1)]++;
}

int recorder_sites_count(struct recorder_sites *sites, const struct book_event *event,
			 double ns_per_stamp)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK;
	struct recording_site *site;

	if (op != BOOK_OP_ALLOC && op != BOOK_OP_FREE)
		return 0;
	site = sites_get(sites, event->record.stack, book_meta_type(event->record.meta));
	if (!site)
		return -ENOMEM;
	if (op == BOOK_OP_FREE) {
		sites_free(site, event, ns_per_stamp);
		return 0;
	}
	site->allocs++;
	site->alloc_bytes += event_bytes(&event->record);
	site->live_bytes += event_bytes(&event->record);
	site->high_bytes = bits_max(site->high_bytes, site->live_bytes);
	return 0;
}

int recorder_sites_rebase(struct recorder_sites *sites, const struct columns_table *table)
{
	for (size_t i = 0; i < sites->count; i++)
		sites->sites[i].live_bytes = 0;
	for (uint32_t slot = 0; slot < table->count; slot++) {
		const struct book_record *record = &table->records[slot];
		struct recording_site *site;

		if (!(record->meta & BOOK_META_LIVE))
			continue;
		site = sites_get(sites, record->stack, book_meta_type(record->meta));
		if (!site)
			return -ENOMEM;
		site->live_bytes += event_bytes(record);
		site->high_bytes = bits_max(site->high_bytes, site->live_bytes);
	}
	return 0;
}

void recorder_sites_deinit(struct recorder_sites *sites)
{
	free(sites->sites);
	free(sites->places);
	*sites = (struct recorder_sites){0};
}
