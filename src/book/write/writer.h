/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The writer of a book: an instance over a mapping, without globals or thread-locals. The library
 * has one, the daemon one for each client of the old protocol. It does not know what backs the
 * mapping; before it first stores to a place it calls reserve() for the memory behind it.
 *
 * Thread-safe, but must not be re-entered from a signal handler that interrupted it: the library
 * prevents that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/threads/lock.h"
#include "book/format/book-clock.h"
#include "book/format/layout.h"
#include "book/write/intern.h"
#include "book/write/shard.h"

/* Who the book belongs to; copied into the header unchanged. */
struct writer_identity {
	uint32_t pid;
	uint32_t keeper;
	uint32_t uid;
	uint32_t euid;
	uint32_t source; /* enum book_source */
	uint64_t start_ticks;
	int64_t boottime_offset, monotonic_offset;
	uint64_t pid_namespace;
	uint8_t boot_id[16];
	char comm[16];
	const char *cmdline; /* may be NULL */
	size_t cmdline_length;
	const char *library; /* version text */
	bool is_unlisted;
};

struct writer_config {
	void *base; /* the mapping, zeroed; stays the caller's */
	uint64_t size;
	uint64_t room;        /* most bytes that may be reserved */
	uint32_t ring_events; /* a power of two from BOOK_RING_MIN to BOOK_RING_MAX */
	uint32_t clock;
	/* 0 or a negative errno. Offset and length are multiples of BOOK_PAGE. */
	int (*reserve)(void *context, uint64_t offset, uint64_t length);
	void *context;
	const struct writer_identity *identity;
};

struct incident_sites;
struct room_chunk;

struct writer {
	uint8_t *base;
	struct book_header *header; /* in the book */
	uint64_t size;
	uint32_t clock;                     /* atomic: writer_stop_clock() changes it */
	uint32_t ring_events;               /* at most, for each device */
	uint32_t home;                      /* the process whose book it is */
	struct shard *shards[BOOK_DEVICES]; /* published with release once complete */

	int (*reserve)(void *context, uint64_t offset, uint64_t length);
	void *context;
	uint64_t room_left;       /* atomic */
	uint64_t rings_left;      /* for rings of more than BOOK_RING_SURE */
	struct lock making;       /* serialises the creation of shards, devices and marks */
	struct room_chunk *chunk; /* private halves of the shards, newest first */
	uint64_t pages[BOOK_POOL_OFFSET / BOOK_PAGE /
		       64];          /* below the pool: a bit for each reserved page */
	uint16_t lost[BOOK_DEVICES]; /* what is inexact about a device that has no shard yet */
	struct intern intern;
	struct lock incident_lock;
	struct incident_sites *incident_sites;
	uint64_t stopped_time; /* of a clock that was stopped */
};

struct writer_device {
	uint64_t unique_id;
	const char *arch;
	const char *card;
	uint32_t remote;
	uint32_t l1_per_core;
	uint32_t cores;
	struct book_memory memory[BOOK_TYPES];
};

/*
 * Reserves the memory that every book has from the start. writer_new() calls it; a caller that must
 * know beforehand whether there is memory calls it first. Returns what @reserve returns.
 */
int writer_reserve_first(int (*reserve)(void *context, uint64_t offset, uint64_t length),
			 void *context);

/* Writes the header and makes the book valid. -ENOMEM, -EINVAL, or what reserve() returned. */
int writer_new(struct writer **ret_writer, const struct writer_config *config);
struct writer *writer_free(struct writer *writer);

/* Charge and reserve memory of the book. -ENOSPC when the room is used up. */
int writer_charge(struct writer *writer, uint64_t bytes);
void writer_refund(struct writer *writer, uint64_t bytes);

/* A shard or a device has changed and is complete: readers that cache it read it again. */
static inline void writer_changed(struct writer *writer)
{
	__atomic_fetch_add(&writer->header->changes, 1, __ATOMIC_RELEASE);
}
int writer_reserve(struct writer *writer, uint64_t offset, uint64_t length);

/* The time for an event. */
static inline uint64_t writer_now(const struct writer *writer)
{
	uint32_t clock = __atomic_load_n(&writer->clock, __ATOMIC_RELAXED);

	if (unlikely(clock == BOOK_CLOCK_STOPPED)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with writer_stop_clock() */
		return writer->stopped_time;
	}
	return book_clock_read(clock);
}

/*
 * For an owner that will make no more system calls: reserves what further events need on every device that
 * is declared or has had one, with @buffers more live ones on each. -ENOSPC if there is less room.
 */
int writer_prepare(struct writer *writer, uint64_t buffers);
int writer_reserve_marks(struct writer *writer);
bool writer_is_declared(const struct writer *writer, uint32_t device);

/* The banks that were declared for a kind of memory; 0 = not known. */
uint32_t writer_banks(const struct writer *writer, uint32_t device, uint32_t type);

/* From now on all events have the same time: no clock is read any more. */
void writer_stop_clock(struct writer *writer);

/* Both or neither. */
int writer_grow(struct writer *writer, uint64_t offset, uint64_t length);

/* Claim a run of units for a segment. 0 if the pool is used up. */
uint32_t writer_claim(struct writer *writer, uint32_t units, uint16_t owner, uint8_t kind);

/* One event on one device. Device and type must be in range: the caller has checked them. */
void writer_alloc(struct writer *writer, uint32_t device, const struct shard_buffer *buffer,
		  uint64_t owner);
void writer_free_buffer(struct writer *writer, uint32_t device, const struct shard_buffer *who);

/*
 * An allocation that was made at @time, for a caller that takes over the contents of another book.
 */
void writer_alloc_born(struct writer *writer, uint32_t device, const struct shard_buffer *buffer,
		       uint64_t time);

/* The same on several devices with one time stamp. */
void writer_alloc_mesh(struct writer *writer, const uint32_t *devices, size_t n,
		       const struct shard_buffer *buffer, uint64_t owner);
void writer_free_mesh(struct writer *writer, const uint32_t *devices, size_t n,
		      const struct shard_buffer *who);

void writer_free_all(struct writer *writer, uint32_t device, uint64_t owner,
		     const struct shard_buffer *who);

/*
 * End whatever is live in a space of a device, whatever its references. @who: the space, and the
 * caller's thread, stack and phase. Return: how many buffers that were.
 */
uint64_t writer_end_space(struct writer *writer, uint32_t device, const struct shard_buffer *who);
void writer_hooked(struct writer *writer, uint32_t device, const struct shard_buffer *buffer);
/*
 * Something was refused because it would lie over a live buffer. @who: the buffer's type, address and
 * space; size, name, thread, stack and phase of what was refused, which ends at @end.
 */
void writer_clash(struct writer *writer, uint32_t device, const struct shard_buffer *who,
		  uint64_t end);

/* What there was when an allocation failed; see struct book_incident. */
struct writer_lack {
	uint64_t largest_free;
	uint64_t size_per_bank;
	uint64_t bank_size;
	uint64_t bank_free;
	uint32_t banks;
	uint32_t shape_flags;
};

void writer_failed(struct writer *writer, uint32_t device, const struct shard_buffer *buffer,
		   const struct writer_lack *lack);
void writer_reset_peak(struct writer *writer, uint32_t device, uint32_t type, uint32_t thread);

void writer_declare(struct writer *writer, uint32_t device, const struct writer_device *facts);
void writer_close_device(struct writer *writer, uint32_t device);
void writer_mark(struct writer *writer, uint32_t name, uint32_t thread, uint32_t phase);
void writer_set_paused(struct writer *writer, bool paused);
void writer_goodbye(struct writer *writer);

/* Raise one of the counters of struct book_rejected. */
void writer_reject(uint64_t *counter);

/* An event on a device was lost: mark its shard, or mark it as soon as it has one. */
void writer_lost(struct writer *writer, uint32_t device, bool is_free, uint32_t type);

/*
 * A thread that has left a call without returning from it drops the locks that it held there. It must
 * not be inside another call.
 */
void writer_drop_left(struct writer *writer, uint32_t thread);

/* Current counters of one type. False if the shard could not be locked or does not exist. */
bool writer_counters(struct writer *writer, uint32_t device, uint32_t type, uint32_t thread,
		     struct book_hot *ret_hot);
