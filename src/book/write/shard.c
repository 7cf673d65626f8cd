/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The operations on a shard: find, write the event, publish, apply. room.c creates and grows
 * shards. A reader relies on this order of stores if the owner dies between any two instructions:
 *
 *	event into the ring | head = n | record | cold block | hot block, its number last | checkpoint
 *
 * head is stored with release, so the event is complete when it is seen; the barrier after it keeps
 * the record and the counters behind it, which release alone would not.
 */

#include "book/write/shard.h"

#include "book/format/event.h"
#include "book/write/room.h"
#include "book/write/writer.h"

static inline struct book_event *shard_event(struct shard *shard, uint64_t number)
{
	return &shard->ring[number & shard->ring_mask];
}

static inline void shard_publish(struct shard *shard, uint64_t number)
{
	shard->head = number;
	/* Pairs with log_head() and oldlog_mark(): whoever sees head sees the event. */
	__atomic_store_n(&shard->page->head, number, __ATOMIC_RELEASE);
	/*
	 * Pairs with the load barriers before the last read of head in log_drain(),
	 * idle_counters_read() and oldlog_event(), and before that of the numbers in block_read():
	 * whoever sees what this event changes, or what the next one writes, also sees head.
	 */
	bits_store_barrier();
}

static inline void shard_write_event(struct shard *shard, uint64_t number, uint64_t time,
				     uint32_t op_slot, uint32_t stack,
				     const struct book_record *record)
{
	struct book_event *event = shard_event(shard, number);

	event->time = time;
	event->op_slot = op_slot;
	event->stack = stack;
	event->record = *record;
}

/*
 * Copies all counters as they stand; the number is 0 meanwhile, so that a half-written copy is
 * recognised.
 */
static __attribute__((noinline)) void shard_checkpoint(struct shard *shard)
{
	uint64_t number = shard->head;
	struct book_checkpoint *checkpoint =
		&shard->page->checkpoint[number / BOOK_CHECKPOINT_EVERY % BOOK_CHECKPOINTS];

	__atomic_store_n(&checkpoint->number, 0, __ATOMIC_RELAXED);
	/* Pairs with the second read of the number in view_checkpoint(). */
	bits_store_barrier();
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		checkpoint->hot[type] = shard->hot[type];
		checkpoint->cold[type] = shard->cold[type];
	}
	/* Pairs with the first read, that of the shard's page. */
	__atomic_store_n(&checkpoint->number, number, __ATOMIC_RELEASE);
}

/* Two counters at once: how many stores an event makes is what bounds it while all is in a cache. */
typedef uint64_t shard_pair __attribute__((vector_size(16), may_alias));

_Static_assert(offsetof(struct book_hot, peak) == 16 && offsetof(struct book_hot, allocs) == 32 &&
		       offsetof(struct book_hot, last) == 48,
	       "pairs");

/*
 * Keeps the counters of a type, and writes those of its two blocks that is not current; it becomes
 * current with its number.
 */
static inline void shard_store_hot(struct shard *shard, uint32_t type, const struct book_hot *hot)
{
	const shard_pair live = {hot->bytes, hot->buffers}, peak = {hot->peak, hot->peak_time},
			 calls = {hot->allocs, hot->frees}, last = {hot->last, hot->number};
	uint8_t side = shard->hot_side[type] ^= 1;
	struct book_hot *block = &shard->page->hot[type][side];
	shard_pair *mirror = (shard_pair *)(void *)&shard->hot[type];
	shard_pair *shown = (shard_pair *)(void *)block;

	mirror[0] = shown[0] = live;
	mirror[1] = shown[1] = peak;
	mirror[2] = shown[2] = calls;
	mirror[3] = last;
	block->last = hot->last;
	/*
	 * Pairs with the first barrier in block_read(), and with the second read in
	 * idle_counters_read().
	 */
	__atomic_store_n(&block->number, hot->number, __ATOMIC_RELEASE);
}

static inline void shard_store_cold(struct shard *shard, uint32_t type)
{
	struct book_cold *mirror = &shard->cold[type];
	uint8_t side = shard->cold_side[type] ^= 1;
	struct book_cold *block = &shard->page->cold[type][side];

	mirror->number = shard->head;
	block->unknown_frees = mirror->unknown_frees;
	block->double_frees = mirror->double_frees;
	block->size_changes = mirror->size_changes;
	block->realloc_live = mirror->realloc_live;
	block->ambiguous_frees = mirror->ambiguous_frees;
	block->hooked = mirror->hooked;
	block->overflow_frees = mirror->overflow_frees;
	/* For readers of a dead owner's book; for a live owner it is read after the hot number. */
	__atomic_store_n(&block->number, mirror->number, __ATOMIC_RELEASE);
}

/* The counter half of applying one event; @op is a constant at most call sites. */
static inline void shard_count(struct shard *shard, uint32_t op, uint64_t time,
			       const struct book_record *record)
{
	uint32_t type = book_meta_type(record->meta);
	struct book_hot hot = shard->hot[type]; /* a copy, so that it can stay in registers */

	/* Before the hot block, whose number says that the whole event has been applied. */
	if (event_is_rare(op)) {
		event_count_cold(op, &shard->cold[type]);
		shard_store_cold(shard, type);
	}
	event_count_hot(op, time, record, &hot);
	hot.number = shard->head;
	shard_store_hot(shard, type, &hot);
}

static inline void shard_maybe_checkpoint(struct shard *shard, uint64_t before)
{
	if (unlikely((shard->head ^ before) / BOOK_CHECKPOINT_EVERY))
		shard_checkpoint(shard);
}

static inline void shard_prefetch(struct shard *shard)
{
	/*
	 * Eight events ahead is early enough for the line to arrive; the ring is too large to stay
	 * in a cache.
	 */
	__builtin_prefetch(shard_event(shard, shard->head + 8), 1);
}

/* An event without a record: counted and logged, nothing else. */
static int shard_note_record(struct shard *shard, uint32_t op, uint64_t time, uint32_t stack,
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

static struct book_record shard_as_record(const struct shard_buffer *buffer, uint64_t time)
{
	return (struct book_record){
		.address = buffer->address,
		.size = buffer->size,
		.birth = time,
		.stack = buffer->stack,
		.name = buffer->name,
		.phase = buffer->phase,
		.thread = buffer->thread,
		.meta = book_meta(buffer->type < BOOK_TYPES ? buffer->type : 0, buffer->flags, 1),
		.shape = buffer->shape,
	};
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

static void shard_bury_past(struct shard_past *ret_past, const struct book_record *record,
			    uint64_t time, const struct shard_buffer *who)
{
	ret_past->grave = (struct book_grave){
		.address = record->address,
		.size = record->size,
		.birth = record->birth,
		.death = time,
		.birth_stack = record->stack,
		.death_stack = who->stack,
		.birth_thread = record->thread,
		.death_thread = who->thread,
		.name = record->name,
		.phase = record->phase,
		.death_phase = who->phase,
		.meta = record->meta,
	};
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
	old.thread = buffer->thread;
	shard_write_event(shard, before + 1, time, slot << 8 | BOOK_OP_FREE | BOOK_OP_RESIZE,
			  buffer->stack, &old);
	shard_write_event(shard, before + 2, time, slot << 8 | BOOK_OP_ALLOC, buffer->stack,
			  &fresh);
	shard_publish(shard, before + 2);

	*record = fresh;
	event_count_cold(BOOK_OP_FREE | BOOK_OP_RESIZE, &shard->cold[type]);
	shard_store_cold(shard, type);
	event_count_hot(BOOK_OP_FREE | BOOK_OP_RESIZE, time, &old, &hot);
	event_count_hot(BOOK_OP_ALLOC, time, &fresh, &hot);
	hot.number = shard->head;
	shard_store_hot(shard, type, &hot);
	shard_maybe_checkpoint(shard, before);
	return SHARD_SIZE_CHANGE;
}

/* Same key, same size: one more reference, or one less. */
static __attribute__((noinline)) int shard_refer(struct shard *shard, uint32_t slot, uint64_t time,
						 uint32_t op, uint32_t stack)
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

int shard_alloc(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
		const struct shard_buffer *buffer, struct shard_past *ret_past)
{
	uint64_t number = shard->head + 1;
	struct book_record *record;
	struct book_record fresh;
	struct index_spot spot;
	uint32_t slot;

	spot = index_find_at(&shard->index, &shard->records, bucket, hash, buffer->address,
			     buffer->type);
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
		bucket = index_bucket_of(&shard->index, hash);
	}
	if (unlikely(!room_slot(shard, &slot)))
		return shard_lose(shard, time, buffer);

	record = records_at(&shard->records, slot);
	fresh = shard_as_record(buffer, time);
	shard_write_event(shard, number, time, slot << 8 | BOOK_OP_ALLOC, buffer->stack, &fresh);
	shard_publish(shard, number);
	*record = fresh;
	shard_count(shard, BOOK_OP_ALLOC, time, &fresh);
	index_insert_at(&shard->index, bucket, hash, slot);
	shard_maybe_checkpoint(shard, number - 1);
	shard_prefetch(shard);
	return SHARD_DONE;
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
	old.thread = who->thread;
	shard_write_event(shard, number, time, spot.slot << 8 | op, who->stack, &old);
	shard_publish(shard, number);

	record->meta = 0;
	record->stack = shard->free_slot;
	shard->free_slot = spot.slot + 1;
	shard_count(shard, op, time, &old);
	index_remove_at(&shard->index, spot);
	if (likely(room_grave(shard)))
		graveyard_bury(&shard->graveyard, hash, &past.grave);
	shard_maybe_checkpoint(shard, number - 1);
	shard_prefetch(shard);
	return SHARD_DONE;
}

int shard_end(struct shard *shard, uint32_t slot, uint64_t time, const struct shard_buffer *who)
{
	const struct book_record *record = records_at(&shard->records, slot);
	uint64_t hash = index_hash(record->address);
	struct index_spot spot =
		index_find_at(&shard->index, &shard->records, index_bucket_of(&shard->index, hash),
			      hash, record->address, book_meta_type(record->meta));

	return shard_end_at(shard, spot, hash, time, BOOK_OP_FREE, who);
}

/* Nothing lives there: was it freed before, never seen, or lost for lack of room? */
static __attribute__((noinline)) int shard_free_nothing(struct shard *shard, uint64_t hash,
							uint64_t time,
							const struct shard_buffer *who,
							struct shard_past *ret_past)
{
	struct book_record record = shard_as_record(who, time);
	const struct book_grave *grave;
	uint32_t low = shard->inexact_low;
	int r;

	record.size = 0;
	if (who->type == INDEX_ANY ? low != 0 : (low >> who->type & 1) != 0)
		return shard_note_record(shard, BOOK_OP_OVERFLOW_FREE, time, who->stack, &record);

	grave = graveyard_find(&shard->graveyard, hash, who->address, who->type);
	if (!grave) {
		r = shard_note_record(shard, BOOK_OP_UNKNOWN_FREE, time, who->stack, &record);
		return r == SHARD_DONE ? SHARD_UNKNOWN_FREE : r;
	}
	ret_past->grave = *grave;
	record.meta = grave->meta;
	record.size = grave->size;
	record.name = grave->name;
	r = shard_note_record(shard, BOOK_OP_DOUBLE_FREE, time, who->stack, &record);
	return r == SHARD_DONE ? SHARD_DOUBLE_FREE : r;
}

/* Drops one reference, or ends the record. */
static inline int shard_free_at(struct shard *shard, struct index_spot spot, uint64_t hash,
				uint64_t time, uint32_t modifier, const struct shard_buffer *who)
{
	if (unlikely(book_meta_refs(records_at(&shard->records, spot.slot)->meta) > 1))
		return shard_refer(shard, spot.slot, time, BOOK_OP_UNREF | modifier, who->stack);
	return shard_end_at(shard, spot, hash, time, BOOK_OP_FREE | modifier, who);
}

/* Circular buffers and kernels have numbers of their own, which may equal a buffer's address. */
static bool shard_may_mean(const struct shard_buffer *who, const struct book_record *record)
{
	return !(who->flags & SHARD_FREE_BUFFER) ||
	       book_meta_type(record->meta) <= SHARD_BUFFER_LAST;
}

/*
 * The caller does not know the type: of the buffers that live at the address, the youngest is
 * meant.
 */
static __attribute__((noinline)) int shard_free_any(struct shard *shard, uint64_t hash,
						    uint64_t time, const struct shard_buffer *who,
						    struct shard_past *ret_past)
{
	struct index_bucket *bucket = index_bucket_of(&shard->index, hash);
	const struct book_record *youngest = NULL;
	uint32_t slots[BOOK_TYPES];
	struct index_spot spot;
	uint32_t found, meant = 0;

	found = index_find_all(&shard->index, &shard->records, hash, who->address, slots);
	for (uint32_t i = 0; i < found; i++) {
		const struct book_record *record = records_at(&shard->records, slots[i]);

		if (!shard_may_mean(who, record))
			continue;
		meant++;
		if (!youngest || record->birth >= youngest->birth)
			youngest = record;
	}
	if (!youngest)
		return shard_free_nothing(shard, hash, time, who, ret_past);
	spot = index_find_at(&shard->index, &shard->records, bucket, hash, who->address,
			     book_meta_type(youngest->meta));
	return shard_free_at(shard, spot, hash, time, meant > 1 ? BOOK_OP_AMBIGUOUS : 0, who);
}

int shard_free(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
	       const struct shard_buffer *who, struct shard_past *ret_past)
{
	struct index_spot spot;

	if (unlikely(who->type == INDEX_ANY))
		return shard_free_any(shard, hash, time, who, ret_past);
	spot = index_find_at(&shard->index, &shard->records, bucket, hash, who->address, who->type);
	if (unlikely(spot.slot == INDEX_NONE))
		return shard_free_nothing(shard, hash, time, who, ret_past);
	return shard_free_at(shard, spot, hash, time, 0, who);
}
