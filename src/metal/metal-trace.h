/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Traces. tt-metal records the operations between begin and end of a capture and replays them later, at the
 * addresses that they had. What they wrote to was allocated during the capture; once such a buffer is freed,
 * the allocator may give its memory to somebody else, whose buffer the next replay overwrites. So all ranges
 * that were given out during a capture are remembered until the trace is released.
 *
 * Only ranges of one allocator are compared: what lies in each of its banks at one address.
 */

#include <stdbool.h>
#include <stdint.h>
#include <ttmem/ttmem.h>

struct metal_space;

/* What an allocator has given out: from @start to @end in each bank. */
struct metal_trace_range {
	const struct metal_space *space;
	uint32_t type;
	bool is_gone; /* its allocator was cleared */
	uint64_t start;
	uint64_t end;
	uint64_t reach; /* the largest end of this and those before it in the same memory */
	uint64_t size;  /* of the buffer */
	struct ttmem_origin origin; /* who allocated it */
};

/* All with the lock held. */

/* A capture has begun on a device or mesh. */
void metal_trace_begin(const void *device);

/* It ends, and has a number: from now on it may be replayed. */
void metal_trace_end(const void *device, uint32_t id);

void metal_trace_release(const void *device, uint32_t id);

/* Whether there is one, captured or being captured. */
bool metal_trace_is_any(void);

/* Whether allocations on @device belong to a capture. */
bool metal_trace_is_open(const void *device);

/* A buffer was allocated: only what is in @range up to end is used, and its size and origin. */
void metal_trace_add(const void *device, const struct metal_trace_range *range);

/* NULL: @range overlaps with nothing that a trace uses. @ret_id: that trace. Valid until the next call. */
const struct metal_trace_range *metal_trace_find(const struct metal_trace_range *range,
						 uint32_t *ret_id);

/* The allocator was cleared: traces use nothing of it any more. */
void metal_trace_clear(const struct metal_space *space);

/* The device or mesh is closed, and its traces with it. NULL = all. */
void metal_trace_close(const void *device);

/* In a forked child. */
void metal_trace_forget(void);
