/* SPDX-License-Identifier: Apache-2.0 */

/* Private memory: anonymous mappings with advice that keeps them small, and out of children and core dumps. */

#include "base/process/private.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/process/freeze.h"

/*
 * A huge page behind a small table would make the first entry cost 2 MiB. A mapping smaller than
 * that cannot get one, unless the kernel merges many of them.
 */
#define PRIVATE_HUGE_FROM (8u << 20)
#define PRIVATE_SMALL (128u << 10)

void *private_map(size_t length)
{
	int saved_errno = errno;
	void *memory;

	if (freeze_is_on())
		return NULL;
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		errno = saved_errno;
		return NULL;
	}
	/* Only advice: without it the memory works too, but uses more. */
	(void)madvise(memory, length, MADV_DONTFORK);
	(void)madvise(memory, length, MADV_DONTDUMP);
	if (length >= PRIVATE_SMALL && length < PRIVATE_HUGE_FROM)
		(void)madvise(memory, length, MADV_NOHUGEPAGE);
	errno = saved_errno;
	return memory;
}

void private_unmap(void *memory, size_t length)
{
	int saved_errno = errno;

	if (memory && !freeze_is_on())
		(void)munmap(memory, length); /* fails only for an address that is not ours */
	errno = saved_errno;
}
