/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether this is a moment to load something: not from a callback of the loader, which holds a lock that
 * loading needs in another order, nor from a signal handler, which may have interrupted just that. A
 * constructor may load as it likes: that is libc's promise, and its locks know their thread.
 *
 * What leads there cannot be asked for yet, because the way up is what is to be loaded. So every word of the
 * stack is looked at: one that is a return into dl_iterate_phdr() or out of a handler may be that. It may
 * also be left over. Of a handler that is told by its signal, which is blocked while it runs; of a callback
 * by time, because none is taken to last a second.
 */

#include <signal.h>
#include <stdbool.h>

#include "lib/bounds.h"

/* @frame: of the thread's own stack. @blocked: the application's. One thread at a time. */
bool moment_is_calm(const struct bounds *bounds, const void *frame, const sigset_t *blocked);
