/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The descriptors of a process that may be books: memory files with our name, open for writing.
 * Usually all threads of a process share one table; those that do not (or that outlive their
 * leader) have theirs searched too.
 */

#include <stdint.h>

struct proc;

/* @name is the link in @folder, to be opened from there. Returns 0 to continue. */
typedef int descriptors_fn(void *context, uint32_t pid, int folder, const char *name);

/*
 * Calls @found for each until it returns something other than 0, or until @deadline
 * (CLOCK_MONOTONIC). Returns 0, what @found returned, -EACCES if the process may not be inspected,
 * -ETIME, or another negative errno.
 */
int descriptors_each(const struct proc *proc, uint32_t pid, uint64_t deadline,
		     descriptors_fn *found, void *context);
