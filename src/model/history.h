/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The history of one address: what a shard's log, graveyard and record table know about it, in one
 * order. The log has everything since it last wrapped; the graveyard and the records reach further
 * back but know only allocations and frees.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

struct stack;
struct timebase;

struct history_event {
	uint64_t number; /* in the shard's log; 0 = derived from a grave or a record */
	uint64_t time_ns;
	uint64_t size;
	uint32_t op;   /* enum book_op */
	uint32_t refs; /* after it */
	uint32_t thread;
	bool size_change; /* a free that is part of a size change, or the alloc after it */
	bool reused;      /* an alloc where something else had been freed before */
	const char *name;
	const char *phase;
	const struct stack *stack; /* of the call; as in a snapshot_buffer */
};

/* One key: process, device, type, address. */
struct history_life {
	uint32_t process; /* index into the snapshot */
	uint32_t device;
	uint32_t type;
	uint32_t space;
	uint64_t address;
	uint64_t allocs, frees; /* among the events */
	bool live;
	bool complete;                /* the log still reaches back to the device's first event */
	struct history_event *events; /* oldest first */
	size_t count, capacity;
};

struct history {
	struct history_life *lives;
	size_t count, capacity;
};

#define HISTORY_NULL     \
	(struct history) \
	{                \
		0        \
	}

/* An event of the log and its number. */
struct history_logged {
	uint64_t number;
	struct book_event event;
};

/* Everything found about @address in one shard, each list in the book's order. */
struct history_shard {
	uint32_t process;
	uint32_t device;
	uint64_t address;
	bool complete;
	uint32_t types; /* a bit for each requested type; 0 = all */
	const struct history_logged *events;
	size_t event_count;
	const struct book_grave *graves;
	size_t grave_count;
	const struct book_record *records; /* live ones */
	size_t record_count;
	const struct timebase *timebase;
	const char *(*text)(void *context, uint32_t id);          /* of a string; NULL = none */
	const struct stack *(*stack)(void *context, uint32_t id); /* likewise of a stack */
	void *context;
};

/* Adds a life for each type that was found. 0 or -ENOMEM. */
int history_add_shard(struct history *history, const struct history_shard *shard);

void history_deinit(struct history *history);
