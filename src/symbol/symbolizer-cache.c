/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hash table in which each key has a few slots; if all are taken, a new entry replaces an old
 * one. Texts are stored without padding, because an answer has room for sixteen frames but usually
 * holds one.
 */

#include "symbol/symbolizer-cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define CACHE_NEAR 16u /* slots per key */

struct symbolizer_cache_entry {
	struct symbolizer_key key;
	uint32_t count;
	uint32_t size; /* of the whole entry */
	/* For each frame: its line, function and file, both with their NUL. */
	char bytes[];
};

/* The slot that holds the key, else a free one, else the first. */
static struct symbolizer_cache_entry **cache_place(const struct symbolizer_cache *cache,
						   const struct symbolizer_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key));

	for (uint64_t i = 0; i < CACHE_NEAR; i++) {
		struct symbolizer_cache_entry **place =
			&cache->places[(hash + i) % SYMBOLIZER_CACHE_PLACES];

		if (!*place || memcmp(&(*place)->key, key, sizeof(*key)) == 0)
			return place;
	}
	return &cache->places[hash % SYMBOLIZER_CACHE_PLACES];
}

static void cache_clear(struct symbolizer_cache *cache)
{
	for (size_t i = 0; cache->places && i < SYMBOLIZER_CACHE_PLACES; i++) {
		free(cache->places[i]);
		cache->places[i] = NULL;
	}
	cache->bytes = 0;
}

void symbolizer_cache_deinit(struct symbolizer_cache *cache)
{
	cache_clear(cache);
	free(cache->places);
	cache->places = NULL;
}

/* Return: the end of the text. */
static const char *cache_text(const char *at, char *ret_text)
{
	size_t size = strlen(at) + 1;

	memcpy(ret_text, at, size);
	return at + size;
}

int symbolizer_cache_find(const struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  struct resolve_frame *ret_frames)
{
	const struct symbolizer_cache_entry *entry =
		cache->places ? *cache_place(cache, key) : NULL;
	const char *at;

	if (!entry || memcmp(&entry->key, key, sizeof(*key)) != 0)
		return -ENOENT;
	at = entry->bytes;
	for (uint32_t i = 0; i < entry->count; i++) {
		struct resolve_frame *frame = &ret_frames[i];

		frame->reserved = 0;
		memcpy(&frame->line, at, sizeof(frame->line));
		at += sizeof(frame->line);
		at = cache_text(at, frame->function);
		at = cache_text(at, frame->file);
	}
	return (int)entry->count;
}

static struct symbolizer_cache_entry *cache_entry_new(const struct symbolizer_key *key,
						      const struct resolve_frame *frames,
						      uint32_t count)
{
	struct symbolizer_cache_entry *entry;
	size_t size = sizeof(*entry);
	char *at;

	for (uint32_t i = 0; i < count; i++)
		size += sizeof(frames[i].line) + strlen(frames[i].function) + 1 +
			strlen(frames[i].file) + 1;
	entry = malloc(size);
	if (!entry)
		return NULL;
	*entry = (struct symbolizer_cache_entry){
		.key = *key, .count = count, .size = (uint32_t)size};
	at = entry->bytes;
	for (uint32_t i = 0; i < count; i++) {
		memcpy(at, &frames[i].line, sizeof(frames[i].line));
		at += sizeof(frames[i].line);
		at = stpcpy(at, frames[i].function) + 1;
		at = stpcpy(at, frames[i].file) + 1;
	}
	return entry;
}

void symbolizer_cache_put(struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  const struct resolve_frame *frames, uint32_t count)
{
	struct symbolizer_cache_entry *entry, **place;

	if (!cache->places)
		cache->places =
			calloc(SYMBOLIZER_CACHE_PLACES, sizeof(struct symbolizer_cache_entry *));
	entry = cache->places ? cache_entry_new(key, frames, count) : NULL;
	if (!entry)
		return;
	if (cache->bytes + entry->size > SYMBOLIZER_CACHE_BYTES)
		cache_clear(cache);
	place = cache_place(cache, key);
	if (*place)
		cache->bytes -= (*place)->size;
	free(*place);
	*place = entry;
	cache->bytes += entry->size;
}
