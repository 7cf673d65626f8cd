/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a frame to its callers. Along the chain of frame pointers, or by what the unwind tables say (rules,
 * lib/rules.h), or as is right for each file (lib/pick.h).
 *
 * Everything that is read is on the thread's own stack, between the frame at which the walk begins and the
 * stack's upper end, aligned, and further up with each frame. So a stack that is damaged ends the walk or
 * leads it astray, but it never faults.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bounds.h"

enum walk_how {
	WALK_FRAMES = 0,
	WALK_RULES = 1,
	WALK_AUTO = 2,
};

/* Once for each book, before anybody else can be inside. */
void walk_open(enum walk_how how);

/* Whether the frames are there for sure, as far as the stack is not damaged. */
bool walk_is_sure(void);

/*
 * Return addresses, innermost first, without those into this library. Return: how many; 0 = there are none, or
 * it needs a walk_thorough() first.
 */
size_t walk_quick(const struct bounds *bounds, const void *frame, uintptr_t *addresses, size_t max);

/*
 * The same, and what has to be known for it is found out: libunwind is loaded and asked. Waits for other
 * threads that do so. @places: the stack pointers after the returns. Return: how many; 0 = there are none, or
 * the program's constructors are running, in which nothing is unwound.
 */
size_t walk_thorough(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
		     uintptr_t *places, size_t max);
