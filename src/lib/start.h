/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the program's own constructors are over. The loader calls those of libraries, which can be seen by
 * its frames; those of the program are called by libc's __libc_start_main(), as main() is a little later.
 *
 * They are told apart by the call that __libc_start_main() is in: of a function whose address it was given,
 * a constructor, or of the one of its own that calls main(). Its frame is the first of the main thread's
 * stack, so it is found from above, and no way up to it has to be known. Where something is not as it should be
 * the constructors are taken to be over. Once they are, nothing is looked at any more.
 *
 * Only where there can be unwinding does it matter; elsewhere they are always over.
 */

#include <stdbool.h>

#include "lib/bounds.h"

/* @frame: of the calling thread; @bounds: of its stack. */
bool start_is_over(const struct bounds *bounds, const void *frame);
