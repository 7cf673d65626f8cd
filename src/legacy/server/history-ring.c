/* SPDX-License-Identifier: Apache-2.0 */

/* Buffers in a hash table and their events, each in a ring. */

#include "legacy/server/history-ring.h"

#include <stdlib.h>

#include "base/hash.h"

struct history_ring *history_ring_new(void)
{
	/* Most of it is never touched. */
	struct history_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->seed = hash_seed(ring);
	for (uint32_t i = 0; i < HISTORY_RING_CHAINS; i++)
		ring->chains[i] = HISTORY_RING_NONE;
	return ring;
}

struct history_ring *history_ring_free(struct history_ring *ring)
{
	free(ring);
	return NULL;
}

static uint32_t *ring_chain(struct history_ring *ring, const struct legacy_history_key *key)
{
	uint64_t hash = hash_fold(key->address ^ ring->seed, HASH_K1);

	hash = hash_fold(hash ^ ((uint64_t)key->pid << 32 | key->device), ring->seed);
	return &ring->chains[hash % HISTORY_RING_CHAINS];
}

static bool ring_is_same(const struct legacy_history_key *a, const struct legacy_history_key *b)
{
	return a->address == b->address && a->pid == b->pid && a->device == b->device &&
	       a->type == b->type;
}

struct history_buffer *history_ring_find(struct history_ring *ring,
					 const struct legacy_history_key *key)
{
	uint32_t at = *ring_chain(ring, key);

	while (at != HISTORY_RING_NONE && !ring_is_same(&ring->buffers[at].key, key))
		at = ring->buffers[at].next;
	return at == HISTORY_RING_NONE ? NULL : &ring->buffers[at];
}

static void ring_unlink(struct history_ring *ring, uint32_t index)
{
	uint32_t *at = ring_chain(ring, &ring->buffers[index].key);

	while (*at != index)
		at = &ring->buffers[*at].next;
	*at = ring->buffers[index].next;
	ring->double_freed -= ring->buffers[index].is_double_freed;
}

struct history_buffer *history_ring_get(struct history_ring *ring,
					const struct legacy_history_key *key)
{
	struct history_buffer *buffer = history_ring_find(ring, key);
	uint32_t *chain = ring_chain(ring, key);
	uint32_t index = ring->turn;

	if (buffer)
		return buffer;
	ring->turn = (index + 1) % LEGACY_HISTORY_BUFFERS;
	if (ring->used == LEGACY_HISTORY_BUFFERS)
		ring_unlink(ring, index);
	else
		ring->used++;
	buffer = &ring->buffers[index];
	*buffer = (struct history_buffer){.key = *key, .next = *chain};
	*chain = index;
	return buffer;
}

void history_ring_add(struct history_ring *ring, struct history_buffer *buffer,
		      enum history_kind kind, uint64_t size, uint32_t refs)
{
	uint64_t number = ++ring->count;

	ring->events[number % LEGACY_HISTORY_EVENTS] = (struct history_event){
		.before = buffer->last,
		.size = size,
		.refs = refs,
		.kind = kind,
	};
	buffer->last = number;
	if (kind == HISTORY_FREE)
		buffer->frees++;
	else
		buffer->allocs++;
}

const struct history_event *history_ring_at(const struct history_ring *ring, uint64_t number)
{
	if (number == 0 || ring->count - number >= LEGACY_HISTORY_EVENTS)
		return NULL;
	return &ring->events[number % LEGACY_HISTORY_EVENTS];
}

size_t history_ring_last(const struct history_ring *ring, const struct history_buffer *buffer,
			 size_t max, const struct history_event **ret_events)
{
	const struct history_event *event = history_ring_at(ring, buffer->last);
	size_t n = 0;

	while (event && n < max) {
		ret_events[n++] = event;
		event = history_ring_at(ring, event->before);
	}
	return n;
}
