/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal has told about its buffers, and what of it was reported to ttmem. A free is never worked
 * out from the Buffer: by then its device may be closed. It ends exactly what was reported.
 */

#include <stdbool.h>
#include <stdint.h>

struct metal_facts;
struct metal_space;
struct metal_target;

/* What is known of a buffer beyond its facts; 0 = unknown. */
struct metal_shape {
	uint32_t type;
	uint64_t size_per_bank;
	uint32_t banks;
	uint32_t flags; /* TTMEM_SHAPE_... */
	uint64_t page_size;
	bool is_per_core; /* its address may be another one's too, on other cores */
};

/* All with the lock held. */

/* What is passed as the owner of a buffer; 0 = nobody wants to know. */
uint64_t metal_records_owner(const void *buffer);

/* @space: of its allocator. Takes over the reference to @target. */
void metal_records_allocated(struct metal_space *space, const void *buffer,
			     const struct metal_facts *facts, const struct metal_shape *shape,
			     struct metal_target *target);

/* False: it was never seen, or has ended with its allocator. */
bool metal_records_freed(const void *buffer);

/*
 * tt-metal has refused to run @program on @device, a Device or MeshDevice: reported if it is because its
 * circular buffers grow into the lowest buffer of L1.
 */
void metal_records_refused(const void *program, const void *device);

/* The allocator is closed: what it held ends, and is reported as held when it was closed. */
void metal_records_clear(const void *allocator);

/* The same for the allocators of a device or mesh. NULL = all end, for no reason of theirs. */
void metal_records_close(const void *device);

/* In a forked child. */
void metal_records_forget(void);
