/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened to the buffers of one user. The last events are in a ring, each with the number of the one
 * before it of the same buffer, so memory is bounded however many buffers there are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "legacy/server/legacy-history.h"

#define HISTORY_RING_CHAINS 65536u
#define HISTORY_RING_NONE UINT32_MAX

enum history_kind {
	HISTORY_ALLOC,
	HISTORY_FREE,
	HISTORY_REUSE,
};

struct history_event {
	uint64_t before; /* number of the buffer's event before this one; 0 = none */
	uint64_t size;
	uint32_t refs;
	enum history_kind kind;
};

struct history_buffer {
	struct legacy_history_key key;
	uint64_t allocs, frees;
	uint64_t last;         /* number of its last event */
	uint64_t resized_from; /* the old size, between the two events of a size change */
	uint32_t next;         /* in its chain */
	bool is_double_freed;
};

struct history_ring {
	uint64_t seed;
	uint64_t count; /* of events ever; the last one's number */
	uint32_t used;  /* buffers ever, up to the maximum */
	uint32_t turn;  /* the buffer that is replaced next */
	size_t double_freed;
	uint32_t chains[HISTORY_RING_CHAINS];
	struct history_buffer buffers[LEGACY_HISTORY_BUFFERS];
	struct history_event events[LEGACY_HISTORY_EVENTS];
};

/* NULL: no memory. */
struct history_ring *history_ring_new(void);
struct history_ring *history_ring_free(struct history_ring *ring);

/* NULL: not known. */
struct history_buffer *history_ring_find(struct history_ring *ring,
					 const struct legacy_history_key *key);
/* Makes it, in place of the one that came first, if it is not known. */
struct history_buffer *history_ring_get(struct history_ring *ring,
					const struct legacy_history_key *key);

void history_ring_add(struct history_ring *ring, struct history_buffer *buffer,
		      enum history_kind kind, uint64_t size, uint32_t refs);

/* The event of that number. NULL: there is none, or newer ones have taken its place. */
const struct history_event *history_ring_at(const struct history_ring *ring, uint64_t number);

/* The buffer's last events, newest first. Return: how many. */
size_t history_ring_last(const struct history_ring *ring, const struct history_buffer *buffer,
			 size_t max, const struct history_event **ret_events);
