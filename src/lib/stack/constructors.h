/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the program has started: all constructors before main() have finished, on the thread that
 * runs them.
 *
 * The first frame of the stack shows this, so it is searched from the top, without unwinding. While
 * libraries are being initialized it is the loader's. Then it is that of __libc_start_main(), which
 * calls the program's constructors and then main(). They are told apart by the call instruction: an
 * indirect call is a constructor, a call of libc's own function is the one that calls main(). If
 * anything is unexpected, the program counts as started. Once it has, nothing is checked any more.
 *
 * Constructors of files loaded later are recognized only by the loader's frames, once the stack has
 * been walked. All of this matters only where unwinding is possible; elsewhere the program always
 * counts as started.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stack/bounds.h"

/* @frame: in the calling thread's stack; @bounds: of that stack. */
bool constructors_are_over(const struct bounds *bounds, const void *frame);

/*
 * Whether one of @addresses follows an indirect call in the loader, which is how it calls
 * constructors of files loaded later. Being in the loader is not enough: in code without frame
 * pointers, what looks like a frame may be data that contains a pointer to a function of the
 * loader. False on unsupported machines.
 */
bool constructors_show_one(const uintptr_t *addresses, size_t count);
