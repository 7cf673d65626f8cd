/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Room for what an event needs: a place in the ring, a slot, a grave. Memory is reserved in steps
 * before it is first stored to; the fast paths here only compare with what is reserved.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "book/write/shard.h"

/* Devices that get a ring of BOOK_RING_SURE at least, however long those of others are. */
#define ROOM_SURE_DEVICES 64u

/* How much of @room may be for rings of more than BOOK_RING_SURE. */
uint64_t room_for_rings(uint64_t room);

/* A zeroed writer with memory for the private halves of its first shards. NULL: out of memory. */
struct writer *room_make_writer(void);

/* Frees the writer and the private halves of all shards; the book stays. */
void room_free(struct writer *writer);

bool room_ring_grow(struct shard *shard, uint64_t last);
bool room_records_grow(struct shard *shard);
bool room_graves_grow(struct shard *shard);

/* Places for the next @count events. */
static inline bool room_ring(struct shard *shard, uint32_t count)
{
	uint64_t last = shard->head + count;

	if (likely(last < shard->ring_room))
		return true;
	return room_ring_grow(shard, last);
}

/* A dead slot, or a new one. The slot is not live until its event has been applied. */
static inline bool room_slot(struct shard *shard, uint32_t *ret_slot)
{
	uint32_t link = shard->free_slot;

	if (likely(link)) {
		shard->free_slot = records_at(&shard->records, link - 1)->stack;
		*ret_slot = link - 1;
		return true;
	}
	if (unlikely(shard->slots >= shard->slot_room) && !room_records_grow(shard))
		return false;
	*ret_slot = shard->slots++;
	/*
	 * Before the event that uses it: view_try_living() sees the slot if it has seen the event's
	 * number.
	 */
	__atomic_store_n(&shard->page->slots, shard->slots, __ATOMIC_RELEASE);
	return true;
}

static inline bool room_grave(struct shard *shard)
{
	if (likely(shard->graveyard.count < shard->graveyard.room))
		return true;
	return room_graves_grow(shard);
}
