/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the program has begun: all constructors that come before main() are over, on the thread that runs them.
 *
 * Its first frame tells, so it is found from above, and no way up to it has to be known. As long as libraries are
 * being prepared that is the loader's. Then it is __libc_start_main()'s, which calls the program's constructors and
 * main() in turn; these are told apart by the call that it is in: of a function whose address it was given,
 * a constructor, or of the one of its own that calls main(). Where something is not as it should be, all is taken
 * to be over. Once it is, nothing is looked at any more.
 *
 * Constructors of what is loaded later are known by the loader's frames only, once the stack has been walked.
 * Only where there can be unwinding does any of this matter; elsewhere it is always over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bounds.h"

/* @frame: of the calling thread; @bounds: of its stack. */
bool start_is_over(const struct bounds *bounds, const void *frame);

/*
 * Whether one of @addresses is where the loader goes on behind the call of an address, as it calls constructors of
 * what is loaded later. That it is the loader's is not enough: in code without frame pointers what looks like
 * a frame may be data, with a pointer to a function of the loader's in it. False on machines that are not known.
 */
bool start_shows_constructor(const uintptr_t *addresses, size_t count);
