/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stretch in which nobody takes the thread away from us: signals are blocked and it cannot be cancelled.
 * For what must not be left half done, because a handler may leave by siglongjmp() and never come back.
 * Faults are not blocked, because blocking them kills.
 */

#include <signal.h>

struct quiet {
	sigset_t signals;
	int cancel_state;
	int saved_errno;
};

void quiet_begin(struct quiet *ret_quiet);

/* errno is again what it was at the beginning. */
void quiet_end(const struct quiet *quiet);
