/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Interning: strings and shapes are stored once in the book's arenas and named by small ids. Lookup
 * is lock-free; a miss takes one private lock. An id is handed out only after the bytes and then
 * the arena's `used` were stored, so an event can never refer to something a reader cannot see.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/threads/lock.h"
#include "book/format/layout.h"

struct writer;

/*
 * Open addressing; grown by copying into a table four times the size. Old tables stay mapped,
 * because a lookup may still be using them: together they are a third of the newest.
 */
struct intern_table {
	struct intern_table *older; /* kept for lookups still in progress */
	uint64_t *entries;          /* hash's upper half << 32 | id; 0 = empty */
	uint32_t mask;
	uint32_t count;
};

struct intern_index {
	struct intern_table *table; /* published with release */
};

struct intern_arena {
	struct book_arena *page; /* in the book */
	uint64_t used;
	uint64_t room; /* bytes from the start whose memory is reserved */
	uint32_t kind;
	uint32_t reserved;
	struct intern_index index;
};

#define INTERN_FIRST 256u /* entries of the first table */

struct intern {
	struct lock lock;
	uint32_t reserved;
	struct intern_arena arenas[BOOK_ARENA_COUNT];
	struct intern_table first; /* for strings, which nearly every process has */
	uint64_t first_entries[INTERN_FIRST];
};

void intern_init(struct intern *intern, struct writer *writer);
void intern_deinit(struct intern *intern);

/* Room for some more names and shapes, so that adding them needs no memory. False: none. */
bool intern_prepare(struct writer *writer);

/* How much of @text is kept: at most @max bytes, without splitting a UTF-8 character. */
size_t intern_length(const char *text, size_t max);

/*
 * Ids; 0 = none: NULL or empty text, or the arena is full (counted). @max truncates on a UTF-8
 * boundary.
 */
uint32_t intern_string(struct writer *writer, const char *text, size_t max);
uint32_t intern_shape(struct writer *writer, const struct book_shape *shape);

/* A shape by its id; all zero for 0 and for an id that was never handed out. Takes no lock. */
struct book_shape intern_shape_of(struct writer *writer, uint32_t id);

/*
 * A stack of Python frames, innermost first; their strings are ids. Frames beyond the maximum are
 * dropped.
 */
#define INTERN_FRAMES_MAX 64u
uint32_t intern_stack(struct writer *writer, const struct book_frame *frames, size_t count);

/*
 * A stack with both: @native frames followed by @python frames, each list innermost first. If there
 * are too many, the outermost are dropped, Python frames first. The value of a native frame is the
 * return address.
 */
uint32_t intern_stack_mixed(struct writer *writer, const struct book_frame *frames, size_t native,
			    size_t python);

/*
 * The frames of a stack by its id, from the book. Return: how many; 0 for an id that was never
 * handed out.
 */
size_t intern_frames(struct writer *writer, uint32_t id, struct book_stack *ret_head,
		     struct book_frame *ret_frames, size_t max);

/* A loaded file; its path is an id. */
uint32_t intern_module(struct writer *writer, const struct book_module *module);

/* Lookup only: for callers that must not take the lock. */
uint32_t intern_find_string(struct writer *writer, const char *text, size_t max);
