/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library for lib/stack/unload-test.c that calls back or allocates. All variants built from this file
 * differ in one word of the same length.
 */

#include <stdint.h>

#define UNLOAD_EXPORT __attribute__((visibility("default")))

typedef void unload_alloc(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
			  const char *name); /* like ttmem_alloc() */

extern const char unload_name[] UNLOAD_EXPORT;
UNLOAD_EXPORT void unload_plugin(void (*next)(uint64_t address), uint64_t address);
UNLOAD_EXPORT void unload_inner(unload_alloc *alloc, uint64_t address);

const char unload_name[] = UNLOAD_NAME;

#ifdef UNLOAD_PAD
/* Moves the unwind tables, which come after it. */
extern const char unload_pad[UNLOAD_PAD] UNLOAD_EXPORT;
const char unload_pad[UNLOAD_PAD] = "pad";
#endif

__attribute__((noinline)) void unload_plugin(void (*next)(uint64_t address), uint64_t address)
{
	/* As in lib/testing/testing-calls.h: forces a frame and prevents a tail call. */
	void *volatile frame_here = __builtin_frame_address(0);

	next(address);
	(void)frame_here;
}

__attribute__((noinline)) void unload_inner(unload_alloc *alloc, uint64_t address)
{
	void *volatile frame_here = __builtin_frame_address(0);

	alloc(0, 0, address, 64, unload_name);
	(void)frame_here;
}
