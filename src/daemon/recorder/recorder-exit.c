/* SPDX-License-Identifier: Apache-2.0 */

/* How a process has ended, for those who report it. */

#include "daemon/recorder/recorder-exit.h"

#include <signal.h>
#include <sys/wait.h>

#include "daemon/registry/tracked.h"
#include "model/snapshot.h"
#include "store/store.h"

void recorder_exit_set(struct store_ending *ending, const int *status)
{
	if (!status)
		return;
	ending->exit_is_known = true;
	if (WIFSIGNALED(*status))
		ending->exit_signal = WTERMSIG(*status);
	else
		ending->exit_code = WEXITSTATUS(*status);
}

const int *recorder_exit_status(const struct tracked *tracked)
{
	return tracked->exit_is_known ? &tracked->exit_status : NULL;
}

struct store_ending recorder_exit_ending(const struct tracked *tracked,
					 const struct snapshot *snapshot, bool closed)
{
	struct store_ending ending = {
		.book = tracked->inode,
		.ended_ns = snapshot->time_ns,
		.closed = closed,
		.execed = __atomic_load_n(&tracked->end, __ATOMIC_RELAXED) == TRACKED_EXECED,
	};

	recorder_exit_set(&ending, recorder_exit_status(tracked));
	return ending;
}

bool recorder_exit_was_killed(const struct tracked *tracked)
{
	int number = tracked->exit_is_known && WIFSIGNALED(tracked->exit_status)
			     ? WTERMSIG(tracked->exit_status)
			     : 0;

	return number && number != SIGHUP && number != SIGINT && number != SIGTERM;
}
