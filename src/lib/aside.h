/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waiting for the loader without hanging with it. Whoever is inside of dlopen() may wait for the very thread
 * that has an event, or may have been left behind by a fork, with its lock. So where there are, or were,
 * other threads, what asks the loader is done by a thread of its own, which is waited for but not for ever.
 * It may come back later, or never: what it uses must stay.
 */

#include <stdbool.h>
#include <stdint.h>

struct aside {
	void (*function)(void);
	uint32_t is_done;
};

/* Whether this process is, and its parent was, of one thread: then nobody else is inside of the loader. */
bool aside_is_alone(void);

/*
 * Whether this process was forked while there were other threads. One of them may have been inside of the
 * loader: what it left there is in no order, and to load something more may end the process.
 */
bool aside_is_orphan(void);

/* Calls the function, beside if need be. @aside: static. Return: whether it has come back. */
bool aside_run(struct aside *aside, void (*function)(void));
