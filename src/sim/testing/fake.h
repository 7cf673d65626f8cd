/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fake libttmem for this layer's tests: the same calls, recorded in the simplest possible tables,
 * so that a test can check whether everything that was allocated was freed exactly once. Forked
 * children have their own tables, as with the real library, but add to the same figures.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <ttmem/ttmem.h>

#define FAKE_TEXT 128

struct fake_figures {
	atomic_ullong allocs;
	atomic_ullong frees;
	atomic_ullong live; /* buffers allocated and not freed, also by processes that have ended */
	atomic_ullong live_again; /* allocations of a live buffer */
	atomic_ullong unknown_frees;
	atomic_ullong double_frees; /* unknown ones of a buffer that was freed before */
	atomic_ullong failed;
	atomic_ullong aliases;
	atomic_ullong hooked;
	atomic_ullong hooked_frees;
	atomic_ullong devices; /* declared */
	atomic_ullong closed;
	atomic_ullong goodbyes;
	atomic_llong phases;    /* pushed and not popped */
	atomic_ullong overlaps; /* allocations that overlap a live one in the same memory */
	atomic_ullong hash;     /* of all calls in their order */
	atomic_ullong by_type[TTMEM_TYPE_COUNT]; /* allocations */
	atomic_ullong bytes[TTMEM_TYPE_COUNT];   /* live */
	atomic_ullong peak[TTMEM_TYPE_COUNT];    /* highest bytes */

	/* The last of its kind. */
	struct ttmem_alloc_args alloc; /* without the name, which is below */
	struct ttmem_device_args device;
	uint64_t failed_size;
	uint64_t failed_largest;
	char alloc_name[FAKE_TEXT];
	char alloc_phase[FAKE_TEXT];
	char freed_name[FAKE_TEXT]; /* of the last double free */
	char freed_phase[FAKE_TEXT];
	char freed_again_phase[FAKE_TEXT];
};

/* The figures of this process and its children; call it before forking, so that they are shared. */
struct fake_figures *fake_figures(void);

/* How many live buffers of this process have this name. */
uint64_t fake_live_named(const char *name);
