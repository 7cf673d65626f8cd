/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One lock for everything that libttmem-metal.so remembers. It is never held while tt-metal's functions
 * are called: they may wait for locks of their own, or throw. A forked child begins with an empty book,
 * so it forgets everything.
 */

void metal_lock(void);
void metal_unlock(void);

/* Once: @forget is called in a forked child, with the lock held. */
void metal_lock_at_fork(void (*forget)(void));
