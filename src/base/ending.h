/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a process ended, as far as it is known. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>

struct ending {
	uint64_t ended_ns; /* CLOCK_REALTIME */
	uint64_t book;     /* any number that distinguishes a process's books: each ends once */
	bool closed;       /* its library said goodbye */
	bool execed;       /* another program replaced it */
	bool has_status;
	int status; /* as from waitpid(), if it is known */
};

/* Return: true. */
static inline bool ending_set(struct ending *ending, int status)
{
	ending->has_status = true;
	ending->status = status;
	return true;
}

/* Of the signal that killed it; 0 = none, or it is not known. */
static inline int ending_signal(const struct ending *ending)
{
	return ending->has_status && WIFSIGNALED(ending->status) ? WTERMSIG(ending->status) : 0;
}
