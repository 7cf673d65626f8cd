/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The call stack of an event: the return addresses above a call, with the frames of another
 * language from a provider, as an id in the book. TTMEM_STACKS selects how they are found
 * (lib/stack/walk.h; =python: only the provider's frames, =off: none), TTMEM_STACK_DEPTH how many
 * frames are kept.
 *
 * A stack that the thread has had before costs the walk, a hash and a comparison. Only the thread's
 * own stack is read, so a broken chain ends the walk or misleads it, but never faults. A missing
 * stack is valid, and is counted in the book.
 *
 * While stacks are on, the gate sends every call down the slow path, so calls cost nothing extra
 * while they are off.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/api/call.h"
#include "lib/stack/walk.h"

#define STACK_DEPTH_USUAL 16u
#define STACK_DEPTH_MAX 64u /* as many as a stack in the book can have */

/* Reads the environment. Once for each book, before it is published. The gate is held. */
void stack_open(void);
bool stack_is_on(void);

/* The thread has left a call that may have been changing its cache of stacks. */
void stack_drop(struct thread *self);

/* The id of the stack that begins at @start; 0 = none, counted. Inside the busy flag. */
uint32_t stack_take(struct writer *writer, struct thread *self, struct walk_start start);

/*
 * The stack of the calling function's caller. Inlined, because the calling function must have a
 * frame: the functions above it are tail calls, which leave the application's frame pointer alone,
 * or have frames too (meson.build ensures that).
 */
static inline __attribute__((always_inline)) uint32_t stack_here(const struct call *call)
{
	/* A handler inside an interrupted call must take no locks. */
	if (likely(!stack_is_on()) || call->is_nested)
		return 0;
	return stack_take(call->writer, call->self, WALK_START());
}

/* The result of stack_here() in this call. */
static inline uint32_t stack_last(const struct call *call)
{
	return stack_is_on() && !call->is_nested ? call->self->stack : 0;
}
