/* SPDX-License-Identifier: Apache-2.0 */

/* What each call site did: as of the last chunk of sites before the moment, and the events since. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "book/format/event.h"
#include "recording/read/replay.h"

/* What is beyond goes to the stack that means none: a book has fewer, a file may claim any number. */
#define SITES_MAX (UINT32_C(1) << 20)

struct sites {
	struct recording_site *list;
	size_t count, capacity;
	uint32_t *table; /* 1 + number in the list, by hash; 0 = none */
	size_t size;     /* of the table; a power of two */
	uint64_t seed;
};

static void sites_deinit(struct sites *sites)
{
	free(sites->list);
	free(sites->table);
}

static uint32_t *sites_place(const struct sites *sites, uint32_t stack, uint32_t type)
{
	size_t at = hash_u64(((uint64_t)stack << 32 | type) ^ sites->seed);

	for (;; at++) {
		uint32_t *place = &sites->table[at & (sites->size - 1)];

		if (*place == 0 || (sites->list[*place - 1].stack == stack &&
				    sites->list[*place - 1].type == type))
			return place;
	}
}

static int sites_grow(struct sites *sites)
{
	size_t size = sites->size ? sites->size * 2 : 1024;
	uint32_t *table;

	if (sites->count * 2 < sites->size)
		return 0;
	table = calloc(size, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(sites->table);
	sites->table = table;
	sites->size = size;
	for (uint32_t i = 0; i < sites->count; i++)
		*sites_place(sites, sites->list[i].stack, sites->list[i].type) = i + 1;
	return 0;
}

/* The site, which is made if there is none; NULL = no memory. */
static struct recording_site *sites_get(struct sites *sites, uint32_t stack, uint32_t type)
{
	struct recording_site *list;
	uint32_t *place;

	if (sites_grow(sites) < 0)
		return NULL;
	place = sites_place(sites, stack, type);
	if (*place == 0 && sites->count >= SITES_MAX) {
		stack = 0;
		place = sites_place(sites, stack, type);
	}
	if (*place)
		return &sites->list[*place - 1];
	list = array_grow(sites->list, &sites->capacity, sites->count + 1, sizeof(*list));
	if (!list)
		return NULL;
	sites->list = list;
	list[sites->count] = (struct recording_site){.stack = stack, .type = type};
	*place = (uint32_t)++sites->count;
	return &list[sites->count - 1];
}

static void sites_free_one(struct recording_site *site, uint64_t bytes, uint64_t life_ns)
{
	uint64_t life = life_ns / 1024;
	uint32_t bucket = life ? 64 - (uint32_t)__builtin_clzll(life) : 0;

	site->frees++;
	site->free_bytes += bytes;
	site->live_bytes -= bits_min(bytes, site->live_bytes);
	site->lives[bits_min(bucket, RECORDING_LIVES - 1)]++;
}

static int sites_apply(struct sites *sites, const struct timebase *timebase,
		       const struct book_event *event)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK, type = book_meta_type(event->record.meta);
	uint64_t bytes = event_bytes(&event->record);
	struct recording_site *site;

	if ((op != BOOK_OP_ALLOC && op != BOOK_OP_FREE) || type >= BOOK_TYPES)
		return 0;
	site = sites_get(sites, event->record.stack, type);
	if (!site)
		return -ENOMEM;
	if (op == BOOK_OP_FREE) {
		uint64_t birth = timebase_ns(timebase, event->record.birth);
		uint64_t death = timebase_ns(timebase, event->time);

		sites_free_one(site, bytes, death > birth ? death - birth : 0);
		return 0;
	}
	site->allocs++;
	site->alloc_bytes += bytes;
	site->live_bytes += bytes;
	site->high_bytes = bits_max(site->high_bytes, site->live_bytes);
	return 0;
}

/* What was live when the recording began. */
static int sites_begin(struct sites *sites, const struct columns_table *table)
{
	for (uint32_t slot = 0; slot < table->count; slot++) {
		const struct book_record *record = &table->records[slot];
		uint32_t type = book_meta_type(record->meta);
		struct recording_site *site;

		if (!(record->meta & BOOK_META_LIVE) || type >= BOOK_TYPES)
			continue;
		site = sites_get(sites, record->stack, type);
		if (!site)
			return -ENOMEM;
		site->live_bytes += event_bytes(record);
		site->high_bytes = bits_max(site->high_bytes, site->live_bytes);
	}
	return 0;
}

static int sites_load(struct sites *sites, struct recording *recording,
		      const struct recording_entry *entry)
{
	int r = recording_read(recording, entry);
	const struct chunk_bytes *contents = &recording->contents;

	for (size_t at = 0; r == 0 && contents->size - at >= sizeof(struct recording_site);
	     at += sizeof(struct recording_site)) {
		struct recording_site one, *site;

		memcpy(&one, contents->bytes + at, sizeof(one));
		site = sites_get(sites, one.stack, one.type);
		if (!site)
			return -ENOMEM;
		*site = one;
	}
	return r;
}

/* The keyframe that has the same event; the stream's count if there is none. */
static size_t sites_keyframe(const struct recording *recording,
			     const struct recording_stream *stream, uint64_t last)
{
	size_t i = 0;

	while (i < stream->count) {
		const struct recording_entry *entry = stream_entry(recording, stream, i);

		if (entry->kind == RECORDING_KEYFRAME && entry->last == last)
			break;
		i++;
	}
	return i;
}

/* The last chunk of sites that is not after the chunk @at, with its keyframe; false = none. */
static bool sites_find(const struct recording *recording, const struct recording_stream *stream,
		       size_t at, size_t *ret_sites, size_t *ret_keyframe)
{
	const struct recording_entry *last = stream_entry(recording, stream, at);
	uint64_t number = last->kind == RECORDING_EVENTS ? last->first - 1 : last->last;
	size_t keyframe;

	for (size_t i = bits_min(at + 2, stream->count); i > 0; i--) {
		const struct recording_entry *entry = stream_entry(recording, stream, i - 1);

		if (entry->kind != RECORDING_SITES || entry->last > number)
			continue;
		keyframe = sites_keyframe(recording, stream, entry->last);
		if (keyframe == stream->count)
			return false;
		*ret_keyframe = keyframe;
		*ret_sites = i - 1;
		return true;
	}
	return false;
}

/* Gaps hide what was done in them; what lives is known again from the keyframe behind it. */
static int sites_pass_gap(struct sites *sites, const struct columns_table *table)
{
	for (size_t i = 0; i < sites->count; i++)
		sites->list[i].live_bytes = 0;
	return sites_begin(sites, table);
}

static int sites_replay(struct sites *sites, struct replay *replay, size_t at,
			const struct replay_cut *cut)
{
	const struct timebase *timebase = &replay->recording->books[replay->stream->book].timebase;
	int r = 0;

	while (r == 0 && replay_next(replay) <= at && replay->next < replay->stream->count) {
		bool is_last = replay->next == at;
		uint32_t count;

		r = replay_step(replay);
		if (r < 0)
			return r;
		count = is_last ? replay_before(replay, cut) : replay->count;
		r = r == REPLAY_GAP ? sites_pass_gap(sites, &replay->table) : 0;
		for (uint32_t i = 0; r == 0 && i < count; i++)
			r = sites_apply(sites, timebase, &replay->events[i]);
	}
	return r;
}

static int sites_collect(struct sites *sites, struct recording *recording,
			 const struct recording_stream *stream, const struct replay_cut *cut)
{
	CLEANUP(replay_deinit) struct replay replay = {0};
	size_t at, from, begin = 0;
	bool is_known;
	int r = replay_find(recording, stream, cut, &at);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	is_known = sites_find(recording, stream, at, &from, &begin);
	if (is_known)
		r = sites_load(sites, recording, stream_entry(recording, stream, from));
	while (!is_known && begin < at &&
	       stream_entry(recording, stream, begin)->kind == RECORDING_SITES)
		begin++;
	if (r == 0)
		r = replay_init(&replay, recording, stream, begin);
	if (r == 0 && !is_known)
		r = sites_begin(sites, &replay.table);
	return r != 0 ? r : sites_replay(sites, &replay, at, cut);
}

int recording_sites(struct recording *recording, size_t book, uint32_t device,
		    const struct recording_moment *moment, struct recording_site **ret_sites,
		    size_t *ret_count)
{
	CLEANUP(sites_deinit) struct sites sites = {.seed = hash_seed(&sites)};
	const struct recording_stream *stream = recording_find_stream(recording, book, device);
	struct replay_cut cut = {0};
	int r;

	if (!stream)
		return -ENOENT;
	if (moment->book == book && moment->device == device)
		cut = (struct replay_cut){.has_number = true, .number = moment->number};
	else
		cut.stamp = recording_stamp(&recording->books[book], moment->time_ns);
	r = sites_collect(&sites, recording, stream, &cut);
	if (r < 0)
		return r;
	*ret_count = sites.count;
	*ret_sites = cleanup_steal(sites.list);
	return 0;
}
