/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reserving in advance, for an owner that will not be able to reserve anything later. What runs out
 * nevertheless is counted and marked as anywhere else.
 */

#include <errno.h>

#include "book/write/incident.h"
#include "book/write/room.h"
#include "book/write/writer.h"

/* Once around ring and graveyard, and slots and index for the buffers. The shard's lock is held. */
static bool prepare_shard_held(struct shard *shard, uint64_t buffers)
{
	bool is_done = room_ring_grow(shard, shard->page->ring_events);

	while (shard->graveyard.room != UINT64_MAX && room_graves_grow(shard))
		;
	while (shard->slot_room < shard->slots + buffers) {
		if (!room_records_grow(shard)) {
			is_done = false;
			break;
		}
	}
	return index_reserve(&shard->index, shard->index.entries + buffers) && is_done;
}

static bool prepare_shard(struct writer *writer, uint32_t device, uint64_t buffers)
{
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);
	const uint32_t unnamed = 0;
	bool is_done;

	if (!shard && writer_is_declared(writer, device))
		shard = shard_get_slow(writer, device);
	else if (!shard)
		return true;
	if (!shard || !shard_take(shard, &unnamed))
		return false;
	is_done = prepare_shard_held(shard, buffers);
	lock_drop(&shard->lock);
	return is_done;
}

int writer_prepare(struct writer *writer, uint64_t buffers)
{
	bool is_done = writer_reserve_marks(writer) == 0;

	is_done = intern_prepare(writer) && is_done;
	is_done = incident_prepare(writer) && is_done;
	buffers = bits_min(buffers, BOOK_SLOTS_MAX);
	for (uint32_t device = 0; device < BOOK_DEVICES; device++)
		is_done = prepare_shard(writer, device, buffers) && is_done;
	return is_done ? 0 : -ENOSPC;
}
