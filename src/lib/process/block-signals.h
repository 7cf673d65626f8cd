/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A section in which the thread can be neither interrupted by signals nor cancelled, for work that
 * must not be left half done: a handler may leave by siglongjmp() and never return. Faults are not
 * blocked, because a blocked fault kills the process.
 */

#include <signal.h>

struct block_signals {
	sigset_t signals;
	int cancel_state;
	int saved_errno;
};

void block_signals_begin(struct block_signals *ret_blocked);

/* Restores errno as it was at the beginning. */
void block_signals_end(const struct block_signals *block_signals);
