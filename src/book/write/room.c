/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creating a shard and letting it grow. A segment is claimed from the pool, charged to the book's
 * room, described in the segment table, and only then named by the shard's directory: if the owner
 * dies in between, only that segment is lost. Ring and graveyard are charged in full when the shard
 * is created, so that running out of room later can cost only records, never the log.
 */

#include "book/write/room.h"

#include "base/process/private.h"
#include "book/write/owners.h"
#include "book/write/writer.h"

/* Private half of a shard: the struct and the first buckets of its index. */
struct room_private {
	struct shard shard;
	struct index_bucket buckets[INDEX_FIRST];
};

_Static_assert(sizeof(struct room_private) <= 3584, "a touched device costs 16 KiB at most");

/*
 * Address space for several of them, used in turn, so that each costs its bytes rather than a page.
 */
#define ROOM_CHUNK 8u

struct room_chunk {
	struct room_chunk *older;
	uint32_t used;
	struct room_private privates[ROOM_CHUNK];
};

/* In one mapping, because each costs system calls at a process's first event. */
struct room_first {
	struct writer writer;
	struct room_chunk chunk __attribute__((aligned(CACHE_LINE)));
};

struct writer *room_make_writer(void)
{
	struct room_first *first = private_map(sizeof(*first));

	if (!first)
		return NULL;
	first->writer.chunk = &first->chunk;
	return &first->writer;
}

/* The end of the next step: a page at first, then whole units. */
static uint64_t room_step(uint64_t have, uint64_t total)
{
	uint64_t next = have == 0 ? BOOK_PAGE : bits_align_up(have + 1, BOOK_UNIT);

	return bits_min(next, total);
}

/*
 * Records of a shard's first segment are reserved in steps of a 32nd of what exists, so that a
 * device with few buffers does not pay for many.
 */
static uint64_t room_small_step(uint64_t have)
{
	return have + bits_align_up(have / 32 + 1, BOOK_PAGE);
}

bool room_ring_grow(struct shard *shard, uint64_t last)
{
	struct book_shard *page = shard->page;
	uint64_t total = (uint64_t)page->ring_events * sizeof(struct book_event);
	uint64_t have = shard->ring_room * sizeof(struct book_event);
	uint64_t base = book_unit_offset(page->ring_unit);

	while (last >= shard->ring_room) {
		uint64_t next = room_step(have, total);

		if (writer_reserve(shard->writer, base + have, next - have) < 0)
			return false;
		have = next;
		shard->ring_room = next == total ? UINT64_MAX : next / sizeof(struct book_event);
	}
	return true;
}

bool room_records_grow(struct shard *shard)
{
	const uint64_t total = (uint64_t)BOOK_SEGMENT_UNITS * BOOK_UNIT;
	struct writer *writer = shard->writer;
	/* Not the slots: more may be reserved than are used. */
	uint32_t segment = shard->slot_room / BOOK_SEGMENT_SLOTS;
	uint32_t unit;
	uint64_t next;

	if (segment >= BOOK_SEGMENTS_MAX)
		return false;
	if (shard->segment_bytes == total)
		shard->segment_bytes = 0;
	if (shard->segment_bytes == 0 && shard->slot_room % BOOK_SEGMENT_SLOTS == 0 &&
	    !shard->page->directory[segment]) {
		unit = writer_claim(writer, BOOK_SEGMENT_UNITS, (uint16_t)shard->device,
				    BOOK_SEGMENT_RECORDS);
		if (!unit)
			return false;
		__atomic_store_n(&shard->page->directory[segment], unit, __ATOMIC_RELEASE);
	}
	unit = shard->page->directory[segment];
	next = bits_align_up((uint64_t)shard->segment_bytes + 1, BOOK_UNIT);
	/* A shard that has filled a segment does not need small steps. */
	if (segment == 0)
		next = bits_min(next, room_small_step(shard->segment_bytes));
	if (writer_grow(writer, book_unit_offset(unit) + shard->segment_bytes,
			next - shard->segment_bytes) < 0)
		return false;
	shard->segment_bytes = (uint32_t)next;
	shard->slot_room =
		segment * BOOK_SEGMENT_SLOTS + (uint32_t)(next / sizeof(struct book_record));
	return true;
}

bool room_graves_grow(struct shard *shard)
{
	const uint64_t total = BOOK_GRAVES * sizeof(struct book_grave);
	struct graveyard *yard = &shard->graveyard;
	uint64_t have = yard->room * sizeof(struct book_grave);
	uint64_t next = room_step(have, total);
	uint32_t *tables;

	if (!shard->page->graves_unit)
		goto lost;
	if (!yard->buckets) {
		tables = private_map(2 * BOOK_GRAVES * sizeof(uint32_t));
		if (!tables)
			goto lost;
		yard->buckets = tables;
		yard->older = tables + BOOK_GRAVES;
	}
	if (writer_reserve(shard->writer, book_unit_offset(shard->page->graves_unit) + have,
			   next - have) < 0)
		goto lost;
	yard->graves = (struct book_grave *)(void *)(shard->writer->base +
						     book_unit_offset(shard->page->graves_unit));
	yard->room = next == total ? UINT64_MAX : next / sizeof(struct book_grave);
	return true;
lost:
	writer_reject(&shard->writer->header->lost_graves);
	return false;
}

uint64_t room_for_rings(uint64_t room)
{
	uint64_t sure = ROOM_SURE_DEVICES *
			(sizeof(struct book_shard) + BOOK_RING_SURE * sizeof(struct book_event) +
			 BOOK_GRAVES * sizeof(struct book_grave));

	return room > sure ? (room - sure) / 2 : 0; /* the other half is for records */
}

/*
 * How long the ring of the next shard is. A long one takes at most a quarter of what is left for them:
 * the first devices leave something to the later ones, and none is refused because of it.
 */
static uint32_t room_ring_events(const struct writer *writer)
{
	uint32_t events = writer->ring_events;

	while (events > BOOK_RING_SURE &&
	       (uint64_t)events * sizeof(struct book_event) > writer->rings_left / 4)
		events /= 2;
	return events;
}

/*
 * Claims and charges what the shard needs and writes its page, except for the word that marks it in
 * use.
 */
static bool room_make_page(struct writer *writer, uint32_t device)
{
	struct book_shard *page =
		(struct book_shard *)(void *)(writer->base + book_shard_offset(device));
	uint32_t ring_events = room_ring_events(writer);
	uint64_t ring_bytes = (uint64_t)ring_events * sizeof(struct book_event);
	uint64_t grave_bytes = BOOK_GRAVES * sizeof(struct book_grave);

	if (writer_charge(writer, sizeof(*page) + ring_bytes) < 0)
		return false;
	if (writer_reserve(writer, book_shard_offset(device), sizeof(*page)) < 0)
		goto refund;
	if (!page->ring_unit)
		page->ring_unit = writer_claim(writer, (uint32_t)(ring_bytes / BOOK_UNIT),
					       (uint16_t)device, BOOK_SEGMENT_RING);
	if (!page->ring_unit)
		goto refund;
	if (writer_charge(writer, grave_bytes) == 0) {
		page->graves_unit = writer_claim(writer, (uint32_t)(grave_bytes / BOOK_UNIT),
						 (uint16_t)device, BOOK_SEGMENT_GRAVES);
		if (!page->graves_unit)
			writer_refund(writer, grave_bytes);
	}
	page->ring_events = ring_events;
	writer->rings_left -= bits_min(writer->rings_left, ring_bytes);
	return true;
refund:
	/* The next event on this device tries again. */
	writer_refund(writer, sizeof(*page) + ring_bytes);
	return false;
}

/* Makes sure that the newest chunk has a free one. */
static bool room_has_private(struct writer *writer)
{
	struct room_chunk *chunk = writer->chunk;

	if (chunk && chunk->used < ROOM_CHUNK)
		return true;
	chunk = private_map(sizeof(*chunk));
	if (!chunk)
		return false;
	chunk->older = writer->chunk;
	writer->chunk = chunk;
	return true;
}

static struct shard *room_make(struct writer *writer, uint32_t device)
{
	struct room_private *private;
	struct shard *shard;

	if (!room_has_private(writer))
		return NULL;
	/* The last step that can fail, because its claims cannot be given back. */
	if (!room_make_page(writer, device))
		return NULL;
	private = &writer->chunk->privates[writer->chunk->used++];
	shard = &private->shard;
	shard->device = device;
	shard->writer = writer;
	shard->base = writer->base;
	shard->page = (struct book_shard *)(void *)(writer->base + book_shard_offset(device));
	shard->ring = (struct book_event *)(void *)(writer->base +
						    book_unit_offset(shard->page->ring_unit));
	shard->ring_mask = shard->page->ring_events - 1;
	shard->graveyard.published = &shard->page->graves;
	index_init(&shard->index, private->buckets);
	/* The page is complete: pairs with reader_next_shard(), whose caller may use it. */
	__atomic_store_n(&shard->page->state, 1, __ATOMIC_RELEASE);
	writer_changed(writer);
	return shard;
}

/* Whether trying makes sense at all: a device without a shard asks at every event. */
static bool room_is_left(struct writer *writer)
{
	uint64_t ring_bytes = (uint64_t)room_ring_events(writer) * sizeof(struct book_event);
	uint64_t next = __atomic_load_n(&writer->header->pool_next, __ATOMIC_RELAXED);

	return __atomic_load_n(&writer->room_left, __ATOMIC_RELAXED) >=
		       sizeof(struct book_shard) + ring_bytes &&
	       next * BOOK_UNIT + ring_bytes <= writer->size;
}

/* Makes the shard visible to events, and records in it what was lost before it existed. */
static void room_publish(struct writer *writer, struct shard *shard)
{
	uint32_t device = shard->device;
	uint64_t lost;

	/* Pairs with the acquire in writer_shard(), and with writer_lost(). */
	__atomic_store_n(&writer->shards[device], shard, __ATOMIC_SEQ_CST);
	lost = __atomic_load_n(&writer->lost[device], __ATOMIC_SEQ_CST);
	for (uint32_t type = 0; lost && type < BOOK_TYPES; type++)
		shard_mark_inexact(shard, lost >> type & (BOOK_INEXACT_LOW | BOOK_INEXACT_HIGH),
				   type);
}

struct shard *shard_get_slow(struct writer *writer, uint32_t device)
{
	struct shard *shard;

	if (!lock_take(&writer->making))
		return NULL;
	shard = writer->shards[device];
	if (!shard && room_is_left(writer)) {
		shard = room_make(writer, device);
		if (shard)
			room_publish(writer, shard);
	}
	lock_drop(&writer->making);
	return shard;
}

static void room_free_private(struct shard *shard)
{
	private_unmap(shard->graveyard.buckets, 2 * BOOK_GRAVES * sizeof(uint32_t));
	owners_free(shard->owners);
	index_deinit(&shard->index);
}

void room_free(struct writer *writer)
{
	struct room_first *first = (struct room_first *)(void *)writer;

	while (writer->chunk) {
		struct room_chunk *chunk = writer->chunk;

		for (uint32_t i = 0; i < chunk->used; i++)
			room_free_private(&chunk->privates[i].shard);
		writer->chunk = chunk->older;
		if (chunk != &first->chunk)
			private_unmap(chunk, sizeof(*chunk));
	}
	private_unmap(first, sizeof(*first));
}
