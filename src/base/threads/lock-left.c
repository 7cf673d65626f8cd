/* SPDX-License-Identifier: Apache-2.0 */

/* Evidence that the holder of a lock will not return. */

#include "base/threads/lock-left.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/threads/lock.h"

/*
 * The kernel compares, because the memory may be unmapped at any time. To requeue no waiter at all is
 * the only comparison that does not also wait: as a waiter this thread could receive a wake-up that was
 * meant for another. Memory that cannot be read is not evidence: it may be readable again.
 */
bool lock_mark_is_gone(const uint32_t *mark, uint32_t value)
{
	uint32_t unused = 0;

	return syscall(SYS_futex, mark, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, &unused, value) < 0 &&
	       errno == EAGAIN;
}

/*
 * getpgid() finds threads of any process in the namespace, so also one that only shares its memory. A
 * number that was given to another thread meanwhile is not evidence.
 */
static bool lock_thread_is_gone(uint32_t thread)
{
	return getpgid((pid_t)thread) < 0 && errno == ESRCH;
}

uint64_t lock_is_left(const struct lock *lock, uint32_t home)
{
	/* Pairs with the release in lock_drop(): marks of earlier holders are not seen any more. */
	uint64_t both = __atomic_load_n(&lock->both, __ATOMIC_ACQUIRE);
	uint32_t holder = (uint32_t)(both >> 32);
	/* Pairs with the release in lock_set_mark(). */
	const uint32_t *mark = __atomic_load_n(&lock->mark, __ATOMIC_ACQUIRE);
	int saved_errno = errno;
	bool is_left;

	/* A process that shares the memory may have another namespace of thread numbers. */
	if (!holder || !(both & LOCK_HELD) || !home || (uint32_t)getpid() != home)
		return 0;
	is_left = (mark && lock_mark_is_gone(mark, holder)) || lock_thread_is_gone(holder);
	errno = saved_errno;
	return is_left ? both : 0;
}

bool lock_take_from(struct lock *lock, uint64_t left)
{
	uint64_t mine = (uint64_t)(uint32_t)(((uint32_t)left | (LOCK_TURN - 1)) + 1) | LOCK_HELD;

	/* It has no name before its mark replaces that of the last holder. */
	return __atomic_compare_exchange_n(&lock->both, &left, mine, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}
