/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One daemon for one state folder: two would write the same database and the same file of tracked
 * processes. The folder itself is locked, so that this needs no space and works where nothing can be
 * written. Who may read the folder can lock it too, so the lock of a stranger does not count.
 */

#include <stdint.h>

struct proc;

/*
 * 0 with the lock in @ret_fd, which holds it until it is closed; -1 there: the folder cannot be
 * locked, and nothing was decided. -EBUSY if another daemon has it; @ret_holder is its pid, or 0.
 */
int state_lock_open(const struct proc *proc, const char *folder, int *ret_fd, uint32_t *ret_holder);
