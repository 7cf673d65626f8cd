/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walks from a frame to its callers: along the chain of frame pointers, by rules from the unwind
 * tables (lib/stack/rules.h), or by whichever is right for each file (lib/stack/fp-or-rule.h).
 *
 * Only the stack that the thread is on is read, aligned, between the frame at which the walk begins
 * and the stack's upper end, and higher with each frame. So a damaged stack ends the walk or misleads
 * it, but it never faults.
 *
 * A walk by rules goes on from a signal handler into the function that was interrupted, also from an
 * alternate stack to the thread's own. That function's address is one more than that of the
 * instruction, like the return address of a call there. The kernel's frame between them is left out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stack/bounds.h"

struct walk_memo;

enum walk_how {
	WALK_FRAMES = 0,
	WALK_RULES = 1,
	WALK_AUTO = 2,
};

/* Where a walk begins: the frame of a function of ours, and the stack pointer of its caller. */
struct walk_start {
	const void *frame;
	uintptr_t sp;
};

/* In the calling function. A frame record is at the upper end of a frame only on x86-64. */
#if defined(__x86_64__)
#define WALK_START()                                              \
	((struct walk_start){.frame = __builtin_frame_address(0), \
			     .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uintptr_t)})
#else
#define WALK_START()                                              \
	((struct walk_start){.frame = __builtin_frame_address(0), \
			     .sp = (uintptr_t)__builtin_dwarf_cfa()})
#endif

#define WALK_MAX 320u /* frames */

struct walk_found {
	uintptr_t addresses[WALK_MAX]; /* return addresses, innermost first */
	uintptr_t places[WALK_MAX];    /* the stack pointers after these returns */
	size_t count;
	bool is_interrupted; /* a signal handler is among them */
	bool is_cut;         /* the outermost has callers that are not known */
};

/* Once for each book, before other threads can use the module. */
void walk_open(enum walk_how how);

/* Whether the frames are certain, provided the stack is not damaged. */
bool walk_is_sure(void);

/*
 * Return addresses, innermost first, without those in this library. Return: how many; 0 = there are
 * none, or walk_thorough() is needed first. @ret_memo: what it depended on (lib/stack/walk-memo.h);
 * meaningless if there are none. May be NULL.
 */
size_t walk_quick(const struct bounds *bounds, struct walk_start start, uintptr_t *addresses,
		  size_t max, struct walk_memo *ret_memo);

/*
 * The same, but learns what is missing from unwind tables. Waits for other threads that do so.
 * @bounds: of the stack that @start is on. @own: of the thread's own.
 */
void walk_thorough(const struct bounds *bounds, const struct bounds *own, struct walk_start start,
		   size_t max, struct walk_found *ret_found);
