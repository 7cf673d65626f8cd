/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ending records: which one a free means, and what it is if it means none. shard-apply.h has the
 * order of stores.
 */

#include "book/write/room.h"
#include "book/write/shard-apply.h"
#include "book/write/shard.h"

static inline __attribute__((always_inline)) int
shard_end_at(struct shard *shard, struct index_spot spot, uint64_t time, uint32_t op,
	     const struct shard_buffer *who, bool is_warm)
{
	struct book_record *record = records_at(&shard->records, spot.slot);
	uint64_t number = shard->head + 1;
	struct book_record old = *record;
	struct shard_past past;

	if (unlikely(!room_ring(shard, 1)))
		return SHARD_UNRECORDED;
	shard_bury_past(&past, &old, time, who);
	old.thread_space = book_other_thread(old.thread_space, who->thread);
	shard_write_event(shard, number, time, spot.slot << 8 | op, who->stack, &old);
	shard_publish(shard, number);

	record->meta = 0;
	record->stack = shard->free_slot;
	shard->free_slot = spot.slot + 1;
	shard_count_as(shard, op, time, &old, is_warm);
	index_remove_at(&shard->index, spot);
	if (likely(room_grave(shard)))
		graveyard_bury(&shard->graveyard, index_hash(old.address, 0), &past.grave);
	shard_maybe_checkpoint(shard, number - 1);
	shard_prefetch(shard);
	return SHARD_DONE;
}

static uint32_t shard_free_op(const struct shard_buffer *who)
{
	return BOOK_OP_FREE | (who->flags & SHARD_FREE_CLOSED ? BOOK_OP_CLOSED : 0);
}

/* One of which it is known what it takes. */
static __attribute__((noinline)) int shard_end_told(struct shard *shard, struct index_spot spot,
						    uint64_t time, const struct shard_buffer *who)
{
	return shard_end_at(shard, spot, time, shard_free_op(who), who, true);
}

int shard_end(struct shard *shard, uint32_t slot, uint32_t op, uint64_t time,
	      const struct shard_buffer *who)
{
	const struct book_record *record = records_at(&shard->records, slot);
	struct index_key key = index_key_of(record);
	uint64_t hash = index_hash(key.address, key.space);
	struct index_spot spot = index_find_at(&shard->index, &shard->records,
					       index_bucket_of(&shard->index, hash), hash, key);

	return shard_end_at(shard, spot, time, op, who, event_is_warm(op, record));
}

/* The caller named no space: it may have any, though one in space 0 comes first. */
static bool shard_is_untold(const struct shard_buffer *who)
{
	return who->space == 0 && !(who->flags & SHARD_FREE_IN_SPACE);
}

/* Nothing lives there: was it freed before, never seen, or lost for lack of room? */
static __attribute__((noinline)) int shard_free_nothing(struct shard *shard, uint64_t time,
							const struct shard_buffer *who,
							struct shard_past *ret_past)
{
	const struct index_key key = {who->address, who->type,
				      shard_is_untold(who) ? INDEX_ANY : who->space};
	struct book_record record = shard_as_record(who, time);
	const struct book_grave *grave;
	uint32_t low = shard->inexact_low;
	int r;

	record.size = 0;
	if (who->type == INDEX_ANY ? low != 0 : (low >> who->type & 1) != 0)
		return shard_note_record(shard, BOOK_OP_OVERFLOW_FREE, time, who->stack, &record);

	grave = graveyard_find(&shard->graveyard, &key);
	if (!grave) {
		r = shard_note_record(shard, BOOK_OP_UNKNOWN_FREE, time, who->stack, &record);
		return r == SHARD_DONE ? SHARD_UNKNOWN_FREE : r;
	}
	ret_past->grave = *grave;
	record.meta = grave->meta;
	record.size = grave->size;
	record.name = grave->name;
	record.thread_space = book_other_thread(grave->birth_thread_space, who->thread);
	r = shard_note_record(shard, BOOK_OP_DOUBLE_FREE, time, who->stack, &record);
	return r == SHARD_DONE ? SHARD_DOUBLE_FREE : r;
}

/*
 * The caller named no space, and there are buffers in several: one of them has ended, and nobody
 * can say which. From now on live is an upper bound.
 */
static int shard_free_unplaced(struct shard *shard, uint64_t time, const struct shard_buffer *who)
{
	struct book_record record = shard_as_record(who, time);

	record.size = 0;
	shard_mark_inexact(shard, BOOK_INEXACT_HIGH, who->type);
	return shard_note_record(shard, BOOK_OP_UNPLACED_FREE, time, who->stack, &record);
}

/* Circular buffers and kernels have numbers of their own, which may equal a buffer's address. */
static bool shard_may_mean(const struct shard_buffer *who, const struct book_record *record)
{
	uint32_t type = book_meta_type(record->meta);

	if (who->type != INDEX_ANY)
		return who->type == type;
	return !(who->flags & SHARD_FREE_BUFFER) || type <= SHARD_BUFFER_LAST;
}

/* The youngest buffer in @space that a free may mean; @ret_meant says how many there are. */
static uint32_t shard_youngest(struct shard *shard, uint32_t space, const struct shard_buffer *who,
			       uint32_t *ret_meant)
{
	uint32_t slots[BOOK_TYPES], found, youngest = INDEX_NONE;
	uint64_t birth = 0;

	*ret_meant = 0;
	found = index_find_all(&shard->index, &shard->records, who->address, space, slots);
	for (uint32_t i = 0; i < found; i++) {
		const struct book_record *record = records_at(&shard->records, slots[i]);

		if (!shard_may_mean(who, record))
			continue;
		++*ret_meant;
		if (record->birth >= birth) {
			birth = record->birth;
			youngest = slots[i];
		}
	}
	return youngest;
}

/*
 * The caller does not know the type, or nothing of it lives in space 0 and the caller named no
 * other. Of the buffers in a space the youngest is meant; of several spaces none is.
 */
static __attribute__((noinline)) int shard_free_search(struct shard *shard, uint64_t time,
						       const struct shard_buffer *who,
						       struct shard_past *ret_past)
{
	uint32_t meant, others, modifier;
	uint32_t slot = shard_youngest(shard, who->space, who, &meant);
	uint32_t last = slot == INDEX_NONE && shard_is_untold(who) ? shard->space_last : who->space;

	for (uint32_t space = who->space + 1; space <= last; space++) {
		uint32_t other = shard_youngest(shard, space, who, &others);

		if (other == INDEX_NONE)
			continue;
		if (slot != INDEX_NONE)
			return shard_free_unplaced(shard, time, who);
		slot = other;
		meant = others;
	}
	if (slot == INDEX_NONE)
		return shard_free_nothing(shard, time, who, ret_past);
	modifier = meant > 1 ? BOOK_OP_AMBIGUOUS : 0;
	if (book_meta_refs(records_at(&shard->records, slot)->meta) > 1)
		return shard_refer(shard, slot, time, BOOK_OP_UNREF | modifier, who->stack);
	return shard_end(shard, slot, shard_free_op(who) | modifier, time, who);
}

int shard_free(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
	       const struct shard_buffer *who, struct shard_past *ret_past)
{
	const struct book_record *record;
	struct index_spot spot;

	if (unlikely(who->type == INDEX_ANY))
		return shard_free_search(shard, time, who, ret_past);
	spot = index_find_at(&shard->index, &shard->records, bucket, hash,
			     (struct index_key){who->address, who->type, who->space});
	if (unlikely(spot.slot == INDEX_NONE))
		return shard_free_search(shard, time, who, ret_past);
	record = records_at(&shard->records, spot.slot);
	if (unlikely(book_meta_refs(record->meta) > 1))
		return shard_refer(shard, spot.slot, time, BOOK_OP_UNREF, who->stack);
	if (unlikely(event_is_warm(BOOK_OP_FREE, record)))
		return shard_end_told(shard, spot, time, who);
	return shard_end_at(shard, spot, time, shard_free_op(who), who, false);
}
