/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walks from a frame to its callers: along the chain of frame pointers, by rules from the unwind
 * tables (lib/stack/rules.h), or by whichever is right for each file (lib/stack/fp-or-rule.h).
 *
 * Only the thread's own stack is read, aligned, between the frame at which the walk begins and the
 * stack's upper end, and higher with each frame. So a damaged stack ends the walk or misleads it,
 * but it never faults.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stack/bounds.h"

enum walk_how {
	WALK_FRAMES = 0,
	WALK_RULES = 1,
	WALK_AUTO = 2,
};

/* Once for each book, before other threads can use the module. */
void walk_open(enum walk_how how);

/* Whether the frames are certain, provided the stack is not damaged. */
bool walk_is_sure(void);

/*
 * Return addresses, innermost first, without those in this library. Return: how many; 0 = there are
 * none, or walk_thorough() is needed first.
 */
size_t walk_quick(const struct bounds *bounds, const void *frame, uintptr_t *addresses, size_t max);

/*
 * The same, but learns what is missing from unwind tables. Waits for other threads that do so.
 * @places: the stack pointers after the returns. Return: how many; 0 = there are none.
 */
size_t walk_thorough(const struct bounds *bounds, const void *frame, uintptr_t *addresses,
		     uintptr_t *places, size_t max);
