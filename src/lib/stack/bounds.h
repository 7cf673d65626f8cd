/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The limits of a thread's own stack, so that walking it touches nothing else. They are read from
 * /proc/self/maps once per thread: libc knows them too, but calls malloc() to find them, which may
 * be the very function that is being interrupted or replaced.
 *
 * Everything between the stack pointer and the upper end of the stack is mapped for as long as the
 * thread lives, whatever the application does. Nothing like that is known of a fiber, so calls made
 * there are out of bounds. Alternate signal stacks have bounds of their own, which the kernel knows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bounds {
	uintptr_t low; /* both 0 = not known */
	uintptr_t high;
	uintptr_t mapped; /* from here on it was mapped when it was found: the main stack grows */
};

/* The calling thread's bounds. Signals must be blocked: a file is open meanwhile. Preserves errno. */
void bounds_find(struct bounds *ret_bounds);

/* Those of the alternate signal stack that @inside is on. False = on none, or it is not known. */
bool bounds_find_alternate(uintptr_t inside, struct bounds *ret_bounds);

/*
 * The same from the text of a maps file, given in pieces of whole lines. Finds the mapping that
 * contains @inside (a thread's descriptor, at the end of its stack), or for 0 the one that the
 * kernel calls [stack].
 */
bool bounds_parse(const char *lines, size_t length, uintptr_t inside, struct bounds *ret_bounds);

/* How much of the calling thread's own stack is left; 0 = not known, or it is on another one. */
size_t bounds_room(const struct bounds *bounds);

static inline bool bounds_hold(const struct bounds *bounds, uintptr_t address, size_t length)
{
	return address >= bounds->low && address < bounds->high &&
	       bounds->high - address >= length && address % sizeof(uintptr_t) == 0;
}
