/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which code asked: the return addresses above a call, with the frames of another language that a provider
 * tells, as an id in the book. TTMEM_STACKS turns it on and says how they are found (lib/walk.h; =python is
 * only the latter), TTMEM_STACK_DEPTH how many frames are kept.
 *
 * A stack that the thread has had before costs the walk, a hash and a compare. Everything that is read is
 * on the thread's own stack, so a chain that is broken ends or goes astray, but never faults. No stack
 * is an answer, and is counted in the book.
 *
 * While stacks are on the gate sends every call the slow way, so calls cost nothing more while they are off.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/call.h"

#define STACK_DEPTH_USUAL 16u
#define STACK_DEPTH_MAX 64u /* as many as a stack in the book has */

/*
 * Reads the environment. Once for each book, before it is published; and once more if stacks are off and a
 * provider has come. The gate is held.
 */
void stack_open(void);
bool stack_is_on(void);

/* The id of the stack whose innermost frame is at @frame; 0 = none, counted. Inside the busy flag. */
uint32_t stack_take(struct writer *writer, struct thread *self, const void *frame);

/*
 * The stack of the calling function's caller. Inlined, because it is the calling function that must have
 * a frame: what it was called through are jumps, which leave the application's frame pointer alone, or
 * has frames too (meson.build sees to it).
 */
static inline __attribute__((always_inline)) uint32_t stack_here(const struct call *call)
{
	/* A handler inside an interrupted call must take no locks. */
	if (likely(!stack_is_on()) || call->is_nested)
		return 0;
	return stack_take(call->writer, call->self, __builtin_frame_address(0));
}

/* What stack_here() gave in this call. */
static inline uint32_t stack_last(const struct call *call)
{
	return stack_is_on() && !call->is_nested ? call->self->stack : 0;
}
