/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The operations on a shard: find, write the event, publish, apply. room.c creates and grows
 * shards, shard-free.c ends records.
 */

#include "book/write/shard.h"

#include "book/write/intern.h"
#include "book/write/room.h"
#include "book/write/shard-apply.h"
#include "book/write/writer.h"

/*
 * Copies all counters as they stand; the number is 0 meanwhile, so that a half-written copy is
 * recognised.
 */
void shard_checkpoint(struct shard *shard)
{
	uint64_t number = shard->head;
	struct book_checkpoint *checkpoint =
		&shard->page->checkpoint[number / BOOK_CHECKPOINT_EVERY % BOOK_CHECKPOINTS];

	__atomic_store_n(&checkpoint->number, 0, __ATOMIC_RELAXED);
	/* Pairs with the second read of the number in view_checkpoint(). */
	bits_store_barrier();
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct book_warm warm = shard_warm(shard, type);

		checkpoint->hot[type] = shard->hot[type];
		checkpoint->cold[type] = shard->cold[type];
		checkpoint->cold[type].known = warm.known;
		checkpoint->cold[type].unplaced_frees = warm.unplaced_frees;
		checkpoint->occupied[type] = warm.occupied;
	}
	/* Pairs with the first read, that of the shard's page. */
	__atomic_store_n(&checkpoint->number, number, __ATOMIC_RELEASE);
}

/* What a buffer takes, by its shape. */
static uint64_t shard_occupied(struct shard *shard, uint32_t meta, uint32_t shape)
{
	struct book_shape found = intern_shape_of(shard->writer, shape);

	return event_occupied(&(struct book_record){.meta = meta}, &found);
}

void shard_count_warm(struct shard *shard, uint32_t op, uint32_t meta, uint32_t shape)
{
	uint32_t type = book_meta_type(meta);
	struct book_warm warm = shard_warm(shard, type);

	event_count_warm(op, shard_occupied(shard, meta, shape), &warm);
	shard_store_warm(shard, type, warm);
}

int shard_note_record(struct shard *shard, uint32_t op, uint64_t time, uint32_t stack,
		      const struct book_record *record)
{
	uint64_t before = shard->head;

	if (!room_ring(shard, 1))
		return SHARD_UNRECORDED;
	shard_write_event(shard, before + 1, time, op, stack, record);
	shard_publish(shard, before + 1);
	shard_count(shard, op, time, record);
	shard_maybe_checkpoint(shard, before);
	return SHARD_DONE;
}

int shard_note(struct shard *shard, uint32_t op, uint64_t time, const struct shard_buffer *buffer)
{
	struct book_record record = shard_as_record(buffer, time);

	return shard_note_record(shard, op, time, buffer->stack, &record);
}

void shard_mark_inexact(struct shard *shard, uint64_t which, uint32_t type)
{
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		if (type != INDEX_ANY && type != t)
			continue;
		__atomic_fetch_or(&shard->page->inexact, which << t, __ATOMIC_RELAXED);
		if (which & BOOK_INEXACT_LOW)
			__atomic_fetch_or(&shard->inexact_low, 1u << t, __ATOMIC_RELAXED);
	}
	/*
	 * For readers of a dead owner's book: the mark must not come after the event it is about.
	 */
	bits_store_barrier();
}

/*
 * The allocation is counted, but there is no room for its record: from now on live is a lower
 * bound.
 */
static __attribute__((noinline)) int shard_lose(struct shard *shard, uint64_t time,
						const struct shard_buffer *buffer)
{
	shard_mark_inexact(shard, BOOK_INEXACT_LOW, buffer->type);
	return shard_note(shard, BOOK_OP_LOST_ALLOC, time, buffer);
}

/* Both halves of a size change at once, because both events are published at once. */
static void shard_resize_warm(struct shard *shard, const struct book_record *old,
			      const struct book_record *fresh)
{
	uint32_t type = book_meta_type(old->meta);
	struct book_warm warm = shard_warm(shard, type);
	bool had = event_is_warm(BOOK_OP_FREE, old), has = event_is_warm(BOOK_OP_ALLOC, fresh);

	if (had)
		event_count_warm(BOOK_OP_FREE, shard_occupied(shard, old->meta, old->shape), &warm);
	if (has)
		event_count_warm(BOOK_OP_ALLOC, shard_occupied(shard, fresh->meta, fresh->shape),
				 &warm);
	if (had || has)
		shard_store_warm(shard, type, warm);
}

/*
 * Same key, different size: the old record ends and a new one takes its slot, published together.
 */
static __attribute__((noinline)) int shard_resize(struct shard *shard, uint32_t slot, uint64_t time,
						  const struct shard_buffer *buffer,
						  struct shard_past *ret_past)
{
	struct book_record *record = records_at(&shard->records, slot);
	struct book_record fresh = shard_as_record(buffer, time);
	struct book_record old = *record;
	uint32_t type = book_meta_type(old.meta);
	struct book_hot hot = shard->hot[type];
	uint64_t before = shard->head;

	if (!room_ring(shard, 2))
		return SHARD_UNRECORDED;
	shard_bury_past(ret_past, &old, time, buffer);
	old.thread_space = fresh.thread_space; /* the same space */
	shard_write_event(shard, before + 1, time, slot << 8 | BOOK_OP_FREE | BOOK_OP_RESIZE,
			  buffer->stack, &old);
	shard_write_event(shard, before + 2, time, slot << 8 | BOOK_OP_ALLOC, buffer->stack,
			  &fresh);
	shard_publish(shard, before + 2);

	*record = fresh;
	event_count_cold(BOOK_OP_FREE | BOOK_OP_RESIZE, &shard->cold[type]);
	shard_store_cold(shard, type);
	shard_resize_warm(shard, &old, &fresh);
	event_count_hot(BOOK_OP_FREE | BOOK_OP_RESIZE, time, &old, &hot);
	event_count_hot(BOOK_OP_ALLOC, time, &fresh, &hot);
	hot.number = shard->head;
	shard_store_hot(shard, type, &hot);
	shard_maybe_checkpoint(shard, before);
	return SHARD_SIZE_CHANGE;
}

int shard_refer(struct shard *shard, uint32_t slot, uint64_t time, uint32_t op, uint32_t stack)
{
	struct book_record *record = records_at(&shard->records, slot);
	struct book_record after = *record;
	uint64_t before = shard->head;

	if (!room_ring(shard, 1))
		return SHARD_UNRECORDED;
	if (book_meta_refs(after.meta) == BOOK_META_REFS_MAX) {
		/* Saturated: too many references to count, so its end will never be seen. */
		shard_mark_inexact(shard, BOOK_INEXACT_HIGH, book_meta_type(after.meta));
	} else if ((op & BOOK_OP_MASK) == BOOK_OP_REF) {
		after.meta++;
	} else {
		after.meta--;
	}
	shard_write_event(shard, before + 1, time, slot << 8 | op, stack, &after);
	shard_publish(shard, before + 1);
	record->meta = after.meta;
	shard_count(shard, op, time, &after);
	shard_maybe_checkpoint(shard, before);
	return SHARD_DONE;
}

/* A new record in @slot, which is free; @place: the home bucket of its key. */
static inline __attribute__((always_inline)) int
shard_begin(struct shard *shard, struct index_place place, uint32_t slot, uint64_t time,
	    const struct shard_buffer *buffer, bool is_warm)
{
	struct book_record *record = records_at(&shard->records, slot);
	struct book_record fresh = shard_as_record(buffer, time);
	uint64_t number = shard->head + 1;

	shard_write_event(shard, number, time, slot << 8 | BOOK_OP_ALLOC, buffer->stack, &fresh);
	shard_publish(shard, number);
	*record = fresh;
	shard_count_as(shard, BOOK_OP_ALLOC, time, &fresh, is_warm);
	index_insert_at(&shard->index, place.bucket, place.hash, slot);
	shard_maybe_checkpoint(shard, number - 1);
	shard_prefetch(shard);
	return SHARD_DONE;
}

/* One of which more is told than its size. */
static __attribute__((noinline)) int shard_begin_told(struct shard *shard, struct index_place place,
						      uint32_t slot, uint64_t time,
						      const struct shard_buffer *buffer)
{
	if (buffer->space > shard->space_last)
		__atomic_store_n(&shard->space_last, buffer->space, __ATOMIC_RELAXED);
	if (buffer->shape || buffer->flags & BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT)
		return shard_begin(shard, place, slot, time, buffer, true);
	return shard_begin(shard, place, slot, time, buffer, false);
}

int shard_alloc(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
		const struct shard_buffer *buffer, struct shard_past *ret_past)
{
	struct index_place place = {.hash = hash, .bucket = bucket};
	struct index_spot spot;
	uint32_t slot;

	spot = index_find_at(&shard->index, &shard->records, bucket, hash,
			     (struct index_key){buffer->address, buffer->type, buffer->space});
	if (unlikely(spot.slot != INDEX_NONE)) {
		if (records_at(&shard->records, spot.slot)->size != buffer->size)
			return shard_resize(shard, spot.slot, time, buffer, ret_past);
		return shard_refer(shard, spot.slot, time, BOOK_OP_REF, buffer->stack);
	}
	if (unlikely(!room_ring(shard, 1)))
		return SHARD_UNRECORDED;
	if (unlikely(shard->index.entries >= shard->index.easy)) {
		if (!index_prepare_slow(&shard->index, &shard->records))
			return shard_lose(shard, time, buffer);
		place.bucket = index_bucket_of(&shard->index, hash);
	}
	if (unlikely(!room_slot(shard, &slot)))
		return shard_lose(shard, time, buffer);
	if (unlikely(buffer->space | buffer->shape | buffer->flags))
		return shard_begin_told(shard, place, slot, time, buffer);
	return shard_begin(shard, place, slot, time, buffer, false);
}
