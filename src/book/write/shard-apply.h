/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private to the shard: how an event is written, published and applied to the counters. A reader
 * relies on this order of stores if the owner dies between any two instructions:
 *
 *	event into the ring | head = n | record | cold and warm block | hot block, its number last |
 *	checkpoint
 *
 * head is stored with release, so the event is complete when it is seen; the barrier after it keeps
 * the record and the counters behind it, which release alone would not.
 */

#include "book/format/event.h"
#include "book/write/shard.h"

void shard_checkpoint(struct shard *shard);

/*
 * The warm part of shard_count(), for events that are warm; @meta and @shape are the record's. A pointer to
 * the record would force it out of the registers in every event.
 */
void shard_count_warm(struct shard *shard, uint32_t op, uint32_t meta, uint32_t shape);

/* An event without a record: counted and logged, nothing else. */
int shard_note_record(struct shard *shard, uint32_t op, uint64_t time, uint32_t stack,
		      const struct book_record *record);

/* One more reference to the record in @slot, or one less. @op: BOOK_OP_REF or BOOK_OP_UNREF. */
int shard_refer(struct shard *shard, uint32_t slot, uint64_t time, uint32_t op, uint32_t stack);

static inline struct book_event *shard_event(struct shard *shard, uint64_t number)
{
	return &shard->ring[number & shard->ring_mask];
}

static inline void shard_publish(struct shard *shard, uint64_t number)
{
	shard->head = number;
	/* Pairs with log_head() and debug_log_mark(): whoever sees head sees the event. */
	__atomic_store_n(&shard->page->head, number, __ATOMIC_RELEASE);
	/*
	 * Pairs with the load barriers before the last read of head in log_drain(),
	 * idle_counters_read() and debug_log_event(), and before that of the numbers in block_read():
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

/* The warm counters have no mirror: few events need them, and only the owner can write the page. */
static inline struct book_warm shard_warm(const struct shard *shard, uint32_t type)
{
	return shard->page->warm[type][shard->warm_side[type]];
}

static inline void shard_store_warm(struct shard *shard, uint32_t type, struct book_warm warm)
{
	uint8_t side = shard->warm_side[type] ^= 1;
	struct book_warm *block = &shard->page->warm[type][side];

	shard->page->has_warm = 1;
	block->occupied = warm.occupied;
	block->known = warm.known;
	block->unplaced_frees = warm.unplaced_frees;
	/* As for the cold block. */
	__atomic_store_n(&block->number, shard->head, __ATOMIC_RELEASE);
}

/*
 * The counter half of applying one event; @op and @is_warm are constants at most call sites. Callers on
 * the fast path have two copies: a call in the middle costs the plain one its registers.
 */
static inline void shard_count_as(struct shard *shard, uint32_t op, uint64_t time,
				  const struct book_record *record, bool is_warm)
{
	uint32_t type = book_meta_type(record->meta);
	struct book_hot hot = shard->hot[type]; /* a copy, so that it can stay in registers */

	/* Before the hot block, whose number says that the whole event has been applied. */
	if (event_is_rare(op)) {
		event_count_cold(op, &shard->cold[type]);
		shard_store_cold(shard, type);
	}
	if (is_warm)
		shard_count_warm(shard, op, record->meta, record->shape);
	event_count_hot(op, time, record, &hot);
	hot.number = shard->head;
	shard_store_hot(shard, type, &hot);
}

static inline void shard_count(struct shard *shard, uint32_t op, uint64_t time,
			       const struct book_record *record)
{
	shard_count_as(shard, op, time, record, event_is_warm(op, record));
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

static inline struct book_record shard_as_record(const struct shard_buffer *buffer, uint64_t time)
{
	return (struct book_record){
		.address = buffer->address,
		.size = buffer->size,
		.birth = time,
		.stack = buffer->stack,
		.name = buffer->name,
		.phase = buffer->phase,
		.thread_space = book_thread_space(buffer->thread, buffer->space),
		.meta = book_meta(buffer->type < BOOK_TYPES ? buffer->type : 0, buffer->flags, 1),
		.shape = buffer->shape,
	};
}

static inline void shard_bury_past(struct shard_past *ret_past, const struct book_record *record,
				   uint64_t time, const struct shard_buffer *who)
{
	ret_past->grave = (struct book_grave){
		.address = record->address,
		.size = record->size,
		.birth = record->birth,
		.death = time,
		.birth_stack = record->stack,
		.death_stack = who->stack,
		.birth_thread_space = record->thread_space,
		.death_thread = who->thread,
		.name = record->name,
		.phase = record->phase,
		.death_phase = who->phase,
		.meta = record->meta,
	};
}
