/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One device's part of the book as its owner sees it: the private half (lock, index, free list,
 * counter mirror) and the operations that publish an event and then apply it. Callers hold the
 * lock.
 *
 * Every operation writes its event into the ring, publishes it by storing its number, and only then
 * touches record and counters; the reader's rule for dead owners depends on that order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/threads/lock.h"
#include "book/format/layout.h"
#include "book/write/graveyard.h"
#include "book/write/index.h"
#include "book/write/records.h"

struct writer;
struct owners;

#define SHARD_BUFFER_LAST 4u     /* types up to this are tt-metal's BufferType */
#define SHARD_FREE_BUFFER 0x100u /* in a free of any type: not a circular buffer or kernel */

/* In a free from space 0: from no other space. A free from another space means it in any case. */
#define SHARD_FREE_IN_SPACE 0x400u

#define SHARD_FREE_CLOSED 0x800u /* in a free: because the space ends */

/* What the caller says about a buffer. Strings, phases, stacks and shapes are ids. */
struct shard_buffer {
	uint64_t address;
	uint64_t size;
	uint32_t type;
	uint32_t flags;
	uint32_t name;
	uint32_t phase;
	uint32_t thread;
	uint32_t stack;
	uint32_t shape;
	uint32_t space;
};

struct shard {
	/* The lines that every event touches; few of them, because a mesh touches 32 shards. */
	struct lock lock;
	uint32_t free_slot; /* 1 + first free slot, linked through the dead records' stack */
	uint32_t ring_mask;
	uint64_t head; /* as published; readers get a copy, which is never read back */
	struct book_event *ring;
	union {
		struct records records;
		struct {
			uint8_t *base;
			struct book_shard *page;
		};
	};
	uint64_t ring_room; /* events from this number on have no memory yet */

	uint32_t slots;
	uint32_t slot_room;     /* slots whose memory is reserved */
	uint32_t segment_bytes; /* reserved of the newest record segment */
	uint32_t inexact_low;   /* a bit for each type that lost allocations */
	uint32_t device;
	uint32_t space_last; /* no buffer was ever in a space above this */
	struct writer *writer;
	struct owners *owners; /* NULL until a buffer names an owner */
	uint8_t cold_side[8];
	uint8_t warm_side[8];

	struct index index __attribute__((aligned(CACHE_LINE)));

	struct graveyard graveyard __attribute__((aligned(CACHE_LINE)));
	uint8_t hot_side[8];
	uint64_t last_birth; /* see shard_birth() */

	struct book_hot hot[BOOK_TYPES] __attribute__((aligned(CACHE_LINE)));
	struct book_cold cold[BOOK_TYPES];
};

/*
 * The outcome of an allocation or a free; determines what an incident says about the other party.
 */
enum shard_outcome {
	SHARD_DONE = 0,
	SHARD_SIZE_CHANGE = 1,
	SHARD_UNKNOWN_FREE = 2,
	SHARD_DOUBLE_FREE = 3,
	SHARD_UNRECORDED = 4, /* not even the event could be written */
};

/* The other party of an incident, if the outcome has one. */
struct shard_past {
	struct book_grave grave; /* double free: the buried one; size change: the old record */
};

_Static_assert(offsetof(struct shard, slots) == CACHE_LINE, "an event touches one line of these");

/* The shard of a device, created if @device has none yet. NULL: no room. */
struct shard *shard_get_slow(struct writer *writer, uint32_t device);

/* The slow path of shard_take(). */
bool shard_take_slow(struct shard *shard, const uint32_t *mark);

/*
 * Takes the lock; lock_drop() gives it back. @mark: the thread's number, in the frame of the call (base/threads/lock.h).
 * False: the event is lost.
 */
static inline bool shard_take(struct shard *shard, const uint32_t *mark)
{
	if (unlikely(!lock_try_as(&shard->lock, *mark)))
		return shard_take_slow(shard, mark);
	lock_set_mark(&shard->lock, mark);
	return true;
}

/*
 * The holder of the lock has left it in the middle of an event (base/threads/lock-left.h): completes what was
 * published, and makes the private half again from the book. The caller has taken the lock over.
 */
void shard_recover(struct shard *shard);

/*
 * The time of an allocation as its record gets it: later than every other birth on the device. The
 * clock may say the same twice (aarch64 counters tick every 10 to 40 ns), or less than before to a
 * thread that had to wait for the lock; but of two buffers at one address the youngest is meant, and
 * slot and birth together tell a buffer from the next one in its slot.
 */
static inline uint64_t shard_birth(struct shard *shard, uint64_t time)
{
	if (unlikely(time <= shard->last_birth))
		time = shard->last_birth + 1;
	shard->last_birth = time;
	return time;
}

/* The time of any other event: nothing dies before it was born. */
static inline uint64_t shard_after_births(const struct shard *shard, uint64_t time)
{
	return bits_max(time, shard->last_birth);
}

/* @bucket: the home bucket of @hash, the hash of address and space. */
int shard_alloc(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
		const struct shard_buffer *buffer, struct shard_past *ret_past);

/* @who: address, type (or INDEX_ANY), space and the caller's thread, stack and phase. */
int shard_free(struct shard *shard, struct index_bucket *bucket, uint64_t hash, uint64_t time,
	       const struct shard_buffer *who, struct shard_past *ret_past);

/*
 * End the record in @slot regardless of its references. @op: BOOK_OP_FREE, perhaps with a modifier.
 * Returns SHARD_DONE or SHARD_UNRECORDED.
 */
int shard_end(struct shard *shard, uint32_t slot, uint32_t op, uint64_t time,
	      const struct shard_buffer *who);

/* Count something that has no record: BOOK_OP_HOOKED, _FAILED, _PEAK_RESET. */
int shard_note(struct shard *shard, uint32_t op, uint64_t time, const struct shard_buffer *buffer);

/*
 * Record that allocations (BOOK_INEXACT_LOW) or frees (_HIGH) of a type (or INDEX_ANY) were lost.
 */
void shard_mark_inexact(struct shard *shard, uint64_t which, uint32_t type);
