/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether it is safe to load a file now: not in a callback of the loader, which holds a lock that
 * loading needs in another order, nor in a signal handler, which may have interrupted the loader. A
 * constructor may load files: libc guarantees that, and its locks are recursive. With other threads
 * present, a helper thread loads instead (lib/stack/loader-thread.h), so a constructor would wait one second in
 * vain.
 *
 * The stack cannot be unwound yet, because the unwinder is what is to be loaded. So every word of
 * the stack is checked: one that is a return address in dl_iterate_phdr() or the return from a
 * handler may be an active frame or a leftover. For a handler the signal mask decides, because its
 * signal is blocked while it runs; for a callback time decides, because none is assumed to last a
 * second.
 */

#include <signal.h>
#include <stdbool.h>

#include "lib/stack/bounds.h"

/* @frame: in the thread's own stack. @blocked: the application's signal mask. Callers serialize. */
bool safe_to_load(const struct bounds *bounds, const void *frame, const sigset_t *blocked);
