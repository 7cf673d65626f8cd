/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ending records: which one a free means, and what it is if it means none. shard-apply.h has the
 * order of stores.
 */

#include "book/write/room.h"
#include "book/write/shard-apply.h"
#include "book/write/shard.h"

/* Graves are hashed by address alone. */
static inline uint64_t shard_grave_hash(const struct book_record *record, uint64_t hash)
{
	return likely(book_space(record->thread_space) == 0) ? hash
							     : index_hash(record->address, 0);
}

static inline int shard_end_at(struct shard *shard, struct index_spot spot, uint64_t hash,
			       uint64_t time, uint32_t op, const struct shard_buffer *who)
{
	struct book_record *record = records_at(&shard->records, spot.slot);
	uint64_t number = shard->head + 1;
	struct book_record old = *record;
	struct shard_past past;

	if (unlikely(!room_ring(shard, 1)))
		return SHARD_UNRECORDED;
	shard_bury_past(&past, &old, time, who);
	old.thread_space = book_thread_space(who->thread, book_space(old.thread_space));
	shard_write_event(shard, number, time, spot.slot << 8 | op, who->stack, &old);
	shard_publish(shard, number);

	record->meta = 0;
	record->stack = shard->free_slot;
	shard->free_slot = spot.slot + 1;
	shard_count(shard, op, time, &old);
	index_remove_at(&shard->index, spot);
	if (likely(room_grave(shard)))
		graveyard_bury(&shard->graveyard, shard_grave_hash(&old, hash), &past.grave);
	shard_maybe_checkpoint(shard, number - 1);
	shard_prefetch(shard);
	return SHARD_DONE;
}

/* Where a live record is in the index. */
static struct index_spot shard_spot(struct shard *shard, const struct book_record *record,
				    uint64_t *ret_hash)
{
	struct index_key key = index_key_of(record);

	*ret_hash = index_hash(key.address, key.space);
	return index_find_at(&shard->index, &shard->records,
			     index_bucket_of(&shard->index, *ret_hash), *ret_hash, key);
}

int shard_end(struct shard *shard, uint32_t slot, uint32_t op, uint64_t time,
	      const struct shard_buffer *who)
{
	uint64_t hash;
	struct index_spot spot = shard_spot(shard, records_at(&shard->records, slot), &hash);

	return shard_end_at(shard, spot, hash, time, op, who);
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
	record.thread_space = book_thread_space(who->thread, book_space(grave->birth_thread_space));
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
static const struct book_record *shard_youngest(struct shard *shard, uint32_t space,
						const struct shard_buffer *who, uint32_t *ret_meant)
{
	const struct book_record *youngest = NULL;
	uint32_t slots[BOOK_TYPES];
	uint32_t found;

	*ret_meant = 0;
	found = index_find_all(&shard->index, &shard->records, who->address, space, slots);
	for (uint32_t i = 0; i < found; i++) {
		const struct book_record *record = records_at(&shard->records, slots[i]);

		if (!shard_may_mean(who, record))
			continue;
		++*ret_meant;
		if (!youngest || record->birth >= youngest->birth)
			youngest = record;
	}
	return youngest;
}

/* Drops one reference, or ends the record. */
static inline int shard_free_at(struct shard *shard, struct index_spot spot, uint64_t hash,
				uint64_t time, uint32_t modifier, const struct shard_buffer *who)
{
	if (unlikely(book_meta_refs(records_at(&shard->records, spot.slot)->meta) > 1))
		return shard_refer(shard, spot.slot, time, BOOK_OP_UNREF | modifier, who->stack);
	return shard_end_at(shard, spot, hash, time, BOOK_OP_FREE | modifier, who);
}

/*
 * The caller does not know the type, or nothing of it lives in space 0 and the caller named no
 * other. Of the buffers in a space the youngest is meant; of several spaces none is.
 */
static __attribute__((noinline)) int shard_free_search(struct shard *shard, uint64_t time,
						       const struct shard_buffer *who,
						       struct shard_past *ret_past)
{
	uint32_t meant, others;
	const struct book_record *record = shard_youngest(shard, who->space, who, &meant);
	uint32_t last = !record && shard_is_untold(who) ? shard->space_last : who->space;
	struct index_spot spot;
	uint64_t hash;

	for (uint32_t space = who->space + 1; space <= last; space++) {
		const struct book_record *other = shard_youngest(shard, space, who, &others);

		if (!other)
			continue;
		if (record)
			return shard_free_unplaced(shard, time, who);
		record = other;
		meant = others;
	}
	if (!record)
		return shard_free_nothing(shard, time, who, ret_past);
	spot = shard_spot(shard, record, &hash);
	return shard_free_at(shard, spot, hash, time, meant > 1 ? BOOK_OP_AMBIGUOUS : 0, who);
}

int shard_free(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
	       const struct shard_buffer *who, struct shard_past *ret_past)
{
	struct index_spot spot;

	if (unlikely(who->type == INDEX_ANY))
		return shard_free_search(shard, time, who, ret_past);
	spot = index_find_at(&shard->index, &shard->records, bucket, hash,
			     (struct index_key){who->address, who->type, who->space});
	if (unlikely(spot.slot == INDEX_NONE))
		return shard_free_search(shard, time, who, ret_past);
	return shard_free_at(shard, spot, hash, time, 0, who);
}
