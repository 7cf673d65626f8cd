/* SPDX-License-Identifier: Apache-2.0 */

/* The lock, and what a forked child does with what it protects. */

#include "metal/metal-lock.h"

#include <pthread.h>

static pthread_mutex_t metal_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*metal_lock_forget)(void);

void metal_lock(void)
{
	(void)pthread_mutex_lock(&metal_mutex); /* fails only for other kinds of mutexes */
}

void metal_unlock(void)
{
	(void)pthread_mutex_unlock(&metal_mutex); /* as above */
}

static void metal_lock_child(void)
{
	metal_lock_forget();
	metal_unlock();
}

void metal_lock_at_fork(void (*forget)(void))
{
	metal_lock_forget = forget;
	/* Out of memory: then a child may report what its parent holds. */
	(void)pthread_atfork(metal_lock, metal_unlock, metal_lock_child);
}
