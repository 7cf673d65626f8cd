/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a thread's own stack lies, so that walking it touches nothing else. Found in /proc/self/maps, once
 * for each thread: libc would tell too, but it calls malloc() for that, which may be what is being
 * interrupted or replaced.
 *
 * Everything between the stack pointer and the stack's upper end is mapped for as long as the thread lives,
 * whatever the application does. Of a fiber or an alternate stack nothing like that is known, so calls
 * from there are outside.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bounds {
	uintptr_t low; /* both 0 = not known */
	uintptr_t high;
};

/* The calling thread's. errno stays as it was. */
void bounds_find(struct bounds *ret_bounds);

/*
 * The same from the text of a maps file, given piece by piece: each piece is whole lines. The mapping that
 * holds @inside (a thread's own descriptor, at the end of its stack) or, for 0, the one that the kernel
 * calls [stack].
 */
bool bounds_parse(const char *lines, size_t length, uintptr_t inside, struct bounds *ret_bounds);

static inline bool bounds_hold(const struct bounds *bounds, uintptr_t address, size_t length)
{
	return address >= bounds->low && address < bounds->high &&
	       bounds->high - address >= length && address % sizeof(uintptr_t) == 0;
}
