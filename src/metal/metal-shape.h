/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which memory a buffer is in and how it lies in the banks. What it takes in a bank is asked of tt-metal, which
 * works it out from the pages each time. For buffers over all banks we do so too: once both have often enough
 * been the same, tt-metal is not asked any more.
 */

#include <stdbool.h>
#include <stdint.h>

struct metal_facts;
struct metal_names;
struct metal_shape;
struct metal_space;

/* L1 is also L1_SMALL. */
enum metal_memory {
	METAL_MEMORY_OTHER,
	METAL_MEMORY_L1,
	METAL_MEMORY_DRAM,
	METAL_MEMORY_TRACE,
};

/* What a buffer says besides its facts. */
struct metal_look {
	enum metal_memory memory;
	uint32_t banks; /* 0 = not known, UINT32_MAX = all */
	bool is_asked;  /* for the next one */
	uint64_t size_per_bank;
	bool is_per_core; /* it has an address of its own on each core */
};

/* Calls tt-metal: without the lock. */
struct metal_look metal_shape_look(const struct metal_names *names, const void *buffer);

/* What the look has left out, if it has. Without the lock. */
void metal_shape_ask(const struct metal_names *names, const void *buffer, struct metal_look *look);

/* Whether what the look has left out cannot be worked out in this space. With the lock held. */
bool metal_shape_must_ask(const struct metal_facts *facts, const struct metal_look *look,
			  const struct metal_space *space);

/* With the lock held. False: refused, as it cannot be told which memory it is in. */
bool metal_shape_make(const struct metal_facts *facts, const struct metal_look *look,
		      const struct metal_space *space, struct metal_shape *ret_shape);
