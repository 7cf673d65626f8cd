/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waiting for the loader without hanging in it. A thread inside dlopen() may be waiting for the
 * very thread that has an event, or fork() may have copied the loader's lock while it was taken. So
 * where there are, or were, other threads, calls into the loader are made by a helper thread, and
 * we wait for it only for a limited time. It may finish later or never, so everything it uses must
 * be static.
 */

#include <stdbool.h>
#include <stdint.h>

struct loader_thread {
	void (*function)(void);
	uint32_t is_done;
};

/* Whether this process has, and its parent had, one thread: nobody else is inside the loader. */
bool loader_thread_is_alone(void);

/*
 * Whether this process was forked while there were other threads. One of them may have been inside
 * the loader and left its data inconsistent, so that loading another file may crash the process.
 */
bool loader_thread_is_orphan(void);

/* Calls the function, in a helper thread if needed. @aside: static. Return: whether it returned. */
bool loader_thread_run(struct loader_thread *loader_thread, void (*function)(void));
