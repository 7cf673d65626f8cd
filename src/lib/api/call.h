/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frame around every call of the library: begin finds the writer and takes the thread's busy
 * flag, end releases it and records the events that signal handlers deferred meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "book/write/intern.h"
#include "lib/api/gate.h"
#include "lib/process/thread.h"

/* What happens to the call while the application has paused tracking. */
enum call_kind {
	CALL_EVENT = 0, /* counted and dropped */
	CALL_OTHER = 1, /* proceeds */
};

struct call {
	struct writer *writer;
	struct thread *self;
	uint32_t mark;    /* see thread.h */
	bool is_nested;   /* inside a call that a signal interrupted: no locks may be taken */
	bool is_paused;   /* an event that is only logged, not recorded */
	bool is_debugged; /* TTMEM_DEBUG or an old log: write a line at the end */
	struct book_rejected before; /* for the debug line */
};

/*
 * Raises the busy flag. @mark is in the frame of the call. Volatile, because nothing in the program reads
 * it there.
 */
static inline void call_enter_busy(struct thread *self, uint32_t *mark)
{
	*(volatile uint32_t *)mark = THREAD_MARK;
	compiler_barrier();
	self->busy = mark;
	compiler_barrier();
}

/* The slow paths; false = nothing to do. */
bool call_begin_slow(struct call *call, enum call_kind kind);
void call_end_slow(struct call *call);

/*
 * Copies a struct of @size bytes that begins with its size. Callers built with older headers may
 * pass a shorter one; missing fields become 0. False, and counted, for NULL or fewer than @least
 * bytes.
 */
bool call_args(struct call *call, void *to, size_t size, size_t least, const void *from);

/* The outcome of the call, for the debug line. */
const char *call_verdict(const struct call *call);

static inline bool call_begin(struct call *call, enum call_kind kind)
{
	uintptr_t word = gate_word();

	if (likely(word == GATE_OFF))
		return false;
	call->self = &thread_self;
	if (unlikely((word <= GATE_LAST && word != GATE_STACKS) ||
		     ((uintptr_t)call->self->busy | call->self->deferred.count) ||
		     call->self->instance != gate_current.instance))
		return call_begin_slow(call, kind);
	call->writer = word == GATE_STACKS ? gate_current.writer : (struct writer *)word;
	call->is_nested = false;
	call->is_paused = false;
	call->is_debugged = false;
	call_enter_busy(call->self, &call->mark);
	return true;
}

static inline void call_end(struct call *call)
{
	if (unlikely(call->is_nested))
		return;
	compiler_barrier();
	call->self->busy = NULL;
	compiler_barrier();
	if (unlikely(call->self->deferred.count))
		call_end_slow(call);
}

/*
 * The fast path of an event, without the cost of a struct call: tracking is on, there is nothing
 * special, and the thread is known. Return: the writer, with the busy flag taken; NULL if the
 * caller must use call_begin(). @mark is in the caller's frame.
 */
static inline struct writer *call_quick_begin(struct thread *self, uint32_t *mark)
{
	uintptr_t word = gate_word();

	if (unlikely(word <= GATE_LAST || ((uintptr_t)self->busy | self->deferred.count) ||
		     self->instance != gate_current.instance))
		return NULL;
	call_enter_busy(self, mark);
	return (struct writer *)word;
}

static inline void call_quick_end(struct thread *self, struct writer *writer)
{
	compiler_barrier();
	self->busy = NULL;
	compiler_barrier();
	if (unlikely(self->deferred.count))
		call_end_slow(&(struct call){.writer = writer, .self = self});
}

/* The id of a name. Inside an interrupted call only names that are already interned have one. */
static inline uint32_t call_name(const struct call *call, const char *name)
{
	if (!name)
		return 0;
	if (unlikely(call->is_nested))
		return intern_find_string(call->writer, name, BOOK_NAME_MAX);
	return intern_string(call->writer, name, BOOK_NAME_MAX);
}

/*
 * Ids given to applications carry the gate's instance in the bits above the book's id: in a forked
 * child the book's id would mean another string or none.
 */
#define CALL_NAME_BITS 23 /* of an id: the whole arena in steps of 8 bytes */

_Static_assert(BOOK_ARENA_SEGMENTS *BOOK_ARENA_UNITS *(BOOK_UNIT / 8) == 1u << CALL_NAME_BITS,
	       "an id of the book fits");

static inline uint32_t call_keep_name(uint32_t id)
{
	return id ? gate_current.instance << CALL_NAME_BITS | id : 0;
}

static inline uint32_t call_known_name(uint32_t kept)
{
	uint32_t id = kept & ((1u << CALL_NAME_BITS) - 1);

	return kept == call_keep_name(id) ? id : 0;
}

static inline uint32_t call_phase_of(const struct thread *self)
{
	return self->phase ? self->phase : gate_phase();
}

static inline uint32_t call_phase(const struct call *call)
{
	return call_phase_of(call->self);
}
