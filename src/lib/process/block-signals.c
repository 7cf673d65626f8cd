/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks signals and cancellation. */

#include "lib/process/block-signals.h"

#include <errno.h>
#include <pthread.h>

#include "base/bits.h"

/* All but faults and SIGSYS, which seccomp raises inside a system call. */
static void block_signals_block(sigset_t *ret_before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t most;

	sigfillset(&most);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		sigdelset(&most, faults[i]);
	(void)pthread_sigmask(SIG_SETMASK, &most, ret_before); /* fails only for a bad argument */
}

void block_signals_begin(struct block_signals *ret_blocked)
{
	ret_blocked->saved_errno = errno;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
				     &ret_blocked->cancel_state); /* cannot fail */
	block_signals_block(&ret_blocked->signals);
}

void block_signals_end(const struct block_signals *block_signals)
{
	(void)pthread_sigmask(SIG_SETMASK, &block_signals->signals, NULL); /* was valid before */
	(void)pthread_setcancelstate(block_signals->cancel_state, NULL);   /* likewise */
	errno = block_signals->saved_errno;
}
