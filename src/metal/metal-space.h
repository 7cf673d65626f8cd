/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The allocators of tt-metal whose buffers were told. Each hands out addresses of its own: two
 * sub-devices, or a mesh and its submesh, may both have a buffer at one address of one device.
 */

#include <stdbool.h>
#include <stdint.h>
#include <ttmem/ttmem.h>

struct metal_facts;
struct metal_names;
struct metal_record;
struct metal_target;

struct metal_space {
	const void *allocator;
	const void *device; /* a Device or MeshDevice that it belongs to */
	struct metal_space *next;
	struct metal_record *records; /* metal-records.c */
	uint32_t number;              /* that ttmem has for it */
	uint32_t unit;                /* what it gives out is a multiple of this; 0 = not known */
	bool is_default;              /* of its device, not of a sub-device */
	bool is_hybrid;               /* it gives out L1 per core, too, and pages of L1 in units */
	uint64_t small_base;          /* L1_SMALL begins there; 0 = not known, UINT64_MAX = none */
	struct ttmem_memory_facts memory[TTMEM_TYPE_COUNT]; /* all 0 = not known */
};

/*
 * Asks tt-metal about the allocator of a buffer, if it is new, and declares the devices. Without the lock.
 * 0, -ENOMEM, or -ENOSPC if there are too many.
 */
int metal_space_meet(const struct metal_names *names, const void *buffer,
		     const struct metal_facts *facts, const struct metal_target *target);

/* NULL: it was not met, or cleared since. With the lock held. */
struct metal_space *metal_space_find(const void *allocator);

/* It has been cleared, and holds no records. With the lock held. */
void metal_space_remove(struct metal_space *space);

/*
 * Numbers from here on belong to no allocator: for buffers of one that are at the same address on different
 * cores. As many as a chip may have cores.
 */
#define METAL_SPACE_LANES 768u

/* The first one, to go through all. With the lock held. */
struct metal_space *metal_space_first(void);

/*
 * Whether a buffer on chip is L1 or L1_SMALL, which only differ by their addresses. TTMEM_ANY: that cannot
 * be told.
 */
uint32_t metal_space_on_chip(const struct metal_space *space, uint64_t address);

/* False: the address is outside the banks that the allocator says it has. */
bool metal_space_has(const struct metal_space *space, uint32_t type, uint64_t address);

/* L1 of a core of a Device, or of the first one of a mesh: they are alike. 0 = not known. Without the lock. */
uint64_t metal_space_per_core(const struct metal_names *names, const void *object);

/* In a forked child, with the lock held. */
void metal_space_forget(void);
